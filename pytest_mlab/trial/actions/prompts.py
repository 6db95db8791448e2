"""The prompts of the edit and fast models. Recordings match requests by their text: a changed
prompt needs new recordings."""

from __future__ import annotations

from string import Template

EDIT = Template("""\
Here is the file $name:

$fence
$content$fence

Change it as follows:

$instruction

Answer with the whole new content of the file in one code block, and nothing else. Keep what the \
instruction does not
touch exactly as it is. The block begins and ends with a line of $fence, or of more of them where \
the content has such a line
itself.
""")

EDIT_SEGMENT = Template("""\
Here are the lines $first to $last of the file $name:

$fence
$content$fence

Change these lines as follows:

$instruction

Answer with the new lines in one code block, and nothing else: they replace the ones above in the \
file, so keep their
indentation, and keep what the instruction does not touch exactly as it is. The block begins and \
ends with a line of $fence,
or of more of them where the lines have such a line themselves.
""")

UNDERSTAND = Template("""\
Below is part $number of $of of the file $name.

$fence
$content
$fence

Report in detail what this part says about the following, with names, numbers and line contents \
where they matter:

$question

Report only what is in this part. When it says nothing about a point, say so.
""")

COMBINE = Template("""\
A long file was read in parts; these are the reports on them:

$parts

Put them together into one report on the following, without repeating anything and without adding \
anything:

$question
""")

RETRIEVE = Template("""\
This is the log of a research project, oldest entry first:

$log

This is the plan at the moment:

$about

Summarise the entries of the log that matter for the next step of this plan. Keep numbers, file \
names and what was
found to work or to fail exactly as they stand in the log, and add nothing that is not in it.
""")

REFLECT = Template("""\
This is the log of a research project, oldest entry first:

$log

Think about the following on the grounds of this log, and say what follows from it:

$about
""")
