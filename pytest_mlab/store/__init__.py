"""Everything that a run writes, and how it is read back.

    plan.json            rundir      the frozen plan; with it the folder is a run
    run.json             rundir      identity: options, commit, versions, machine
    shared.sqlite        shared      dollars spent, endpoints given up or held, for all workers
    store/ab/cdef…       content     contents by sha256: files, manifests, prompts, replies
    trials/<trial>/
      trace.jsonl        journal     one event (events) a line, appended while the trial runs
      result.json        trialdir    written once, at the end: its presence means done
      now.json           underway    what the trial does at this moment, while it runs
      agent.log                      what the agent printed
      outputs/ logs/ backups/        whole outputs, the agent's notes, files that edits replaced
      attempts/<n>/      trialdir    the files of an earlier attempt

``snapshots`` writes what a step changed into its event and whole ``manifest`` texts into the store;
``moments`` puts the workspaces together again. ``serial`` is how plans and results become JSON."""
