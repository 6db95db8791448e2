"""Essays with six grades: train.csv with the grades, test.csv without, and the hidden grades of the
test essays.

`mini` is generated: essays of imaginary English learners whose grades follow from six skills, each
of which shows in the text in a way of its own. Only Python's own generator is used, whose numbers
are the same everywhere."""

import csv
import math
import random
from pathlib import Path

GRADES = ["cohesion", "syntax", "vocabulary", "phraseology", "grammar", "conventions"]
COLUMNS = ["text_id", "full_text", *GRADES]
MINI_ESSAYS = 1000
TRAIN_SHARE = 0.8

Rows = list[list[str]]
Skills = dict[str, float]  # 0 to 1 by grade


def prepare(raw: Path, public: Path, answers: Path, variant: str) -> None:
    """train.csv, test.csv and sample_submission.csv in ``public``, answers.csv (id and grades) in
    ``answers``."""
    rows = (
        generate(random.Random(0), MINI_ESSAYS) if variant == "mini" else kaggle(raw / "train.csv")
    )
    cut = int(len(rows) * TRAIN_SHARE)
    test = rows[cut:]
    write(public / "train.csv", COLUMNS, rows[:cut])
    write(public / "test.csv", COLUMNS[:2], [row[:2] for row in test])
    write(
        public / "sample_submission.csv",
        ["text_id", *GRADES],
        [[row[0], *["3.0"] * 6] for row in test],
    )
    write(answers / "answers.csv", ["text_id", *GRADES], [[row[0], *row[2:]] for row in test])


def kaggle(path: Path) -> Rows:
    """Kaggle's training file in a fixed random order: it is sorted by id."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    if header != COLUMNS:
        raise ValueError(
            f"{path.name}: expected the columns {', '.join(COLUMNS)}; found {', '.join(header[:8])}"
        )
    random.Random(0).shuffle(rows)
    return rows


def write(path: Path, header: list[str], rows: Rows) -> None:
    """A csv file with the same bytes everywhere."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


# --- the generator: grades ------------------------------------------------------------------------


def generate(rng: random.Random, count: int) -> Rows:
    """``count`` essays. The six grades of a writer go together, as they do in the real ones
    (correlation about 0.5)."""
    rows: Rows = []
    ids = rng.sample(range(16**9), count)
    for number in ids:
        general = rng.gauss(0, 1)
        ability = {grade: 0.75 * general + 0.66 * rng.gauss(0, 1) for grade in GRADES}
        skills = {grade: 1 / (1 + math.exp(-1.3 * value)) for grade, value in ability.items()}
        grades = [grade_of(rng, value) for value in ability.values()]
        rows.append([f"{number:012X}", essay(rng, skills), *grades])
    return rows


def grade_of(rng: random.Random, ability: float) -> str:
    """1.0 to 5.0 in halves; two raters would not always agree."""
    grade = round(2 * (3.1 + 0.65 * ability + rng.gauss(0, 0.2))) / 2
    return str(min(5.0, max(1.0, grade)))


# --- the generator: texts -------------------------------------------------------------------------


def listed(text: str) -> list[str]:
    """What stands between the bars."""
    return text.split("|")


# Who acts, the pronoun that can stand for them, and whether the verb takes an s.
SUBJECTS = [
    ("students", "they", False),
    ("my teacher", "she", True),
    ("young people", "they", False),
    ("the school", "it", True),
    ("my friends", "they", False),
    ("our community", "it", True),
    ("a child", "he", True),
    ("many parents", "they", False),
    ("my older brother", "he", True),
    ("the principal", "she", True),
    ("teenagers", "they", False),
    ("a good leader", "he", True),
]
VERBS = listed(
    "help|need|learn|improve|support|choose|share|explain|change|enjoy|protect|follow|discover|prefer"
)
OBJECTS = listed(
    "new skills|the problem|their goals|a good decision|the rules|many activities|free time|the"
    " lesson|other people|"
    "a better future|the homework|technology|the environment|sports|the project|first impressions"
)
PLAIN = listed("good|bad|big|nice|fun|happy|hard|easy|great|sad")
ADVANCED = listed(
    "beneficial|detrimental|substantial|considerate|remarkable|numerous|enthusiastic|challenging|essential|significant|"
    "responsible|independent|persistent|meaningful|efficient|unfamiliar"
)
LINKS = listed(
    "However|For example|In addition|As a result|On the other hand|Therefore|Moreover|In"
    " conclusion|First of all|"
    "For this reason"
)
CLAUSES = listed("because|although|when|if|while|since|so that|even though")
# A phrase as it is said, and as somebody says it who translates it.
PHRASES = [
    ("depend on", "depend of"),
    ("are interested in", "are interested on"),
    ("make a decision about", "do a decision about"),
    ("pay attention to", "put attention to"),
    ("spend time on", "pass time on"),
    ("are good at", "are good in"),
    ("feel responsible for", "feel responsible of"),
    ("take care of", "take care to"),
    ("listen to", "listen at"),
    ("look forward to", "look forward for"),
]


def essay(rng: random.Random, skills: Skills) -> str:
    """10 to 24 sentences, in paragraphs where the writer knows about them."""
    parts: list[str] = []
    for number in range(rng.randint(10, 24)):
        if parts:
            parts.append("\n\n" if rng.random() < 0.22 * skills["cohesion"] else " ")
        parts.append(sentence(rng, skills, first=number == 0))
    return "".join(parts)


def sentence(rng: random.Random, skills: Skills, *, first: bool) -> str:
    """One statement, perhaps with a subordinate clause, a phrase and a link to what came before."""
    words = clause(rng, skills, pronoun=not first and rng.random() < 0.4 * skills["cohesion"])
    if rng.random() < 0.10 + 0.70 * skills["syntax"]:
        words += f" {rng.choice(CLAUSES)} {clause(rng, skills)}"
    elif rng.random() < 0.45 * (1 - skills["syntax"]):
        # no verb at all
        words = f"{rng.choice(SUBJECTS)[0]} {rng.choice(OBJECTS)} and {rng.choice(OBJECTS)}"
    if rng.random() < 0.5:
        right, wrong = rng.choice(PHRASES)
        chosen = right if rng.random() < skills["phraseology"] else wrong
        words += f" and they {chosen} {rng.choice(OBJECTS)}"
    if rng.random() < 0.05 + 0.55 * skills["cohesion"]:
        words = f"{rng.choice(LINKS)}, {words}"
    return in_writing(rng, words, skills["conventions"])


def clause(rng: random.Random, skills: Skills, *, pronoun: bool = False) -> str:
    """Subject, verb, object, and a way of doing it; the verb agrees when the writer knows how."""
    subject, short, singular = rng.choice(SUBJECTS)
    if rng.random() < 0.5 * (1 - skills["grammar"]):
        singular = not singular
    verb = rng.choice(VERBS) + "s" * singular
    how = rng.choice(ADVANCED if rng.random() < skills["vocabulary"] else PLAIN)
    article = "an" if how[0] in "aeiou" else "a"
    return f"{short if pronoun else subject} {verb} {rng.choice(OBJECTS)} in {article} {how} way"


def in_writing(rng: random.Random, words: str, skill: float) -> str:
    """Spelling, capital letter and full stop."""
    spelt = [
        misspelt(rng, word) if rng.random() < 0.13 * (1 - skill) else word for word in words.split()
    ]
    text = " ".join(spelt)
    initial = text[0].upper() if rng.random() < 0.35 + 0.65 * skill else text[0].lower()
    return initial + text[1:] + ("." if rng.random() < 0.3 + 0.7 * skill else "")


def misspelt(rng: random.Random, word: str) -> str:
    """A letter dropped, doubled, or two letters swapped; short words are always right."""
    if len(word) < 5:
        return word
    at = rng.randrange(1, len(word) - 1)
    middle = rng.choice(["", word[at] * 2, word[at + 1] + word[at]])
    rest = word[at + 2 :] if len(middle) == 2 and middle[0] != middle[1] else word[at + 1 :]
    return word[:at] + middle + rest
