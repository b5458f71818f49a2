"""The simulator: a day of traffic in seconds, over the real scripts on a virtual clock.

The rule: nothing of the scheduler is modelled here. A workload says what arrives when, the engine
moves a clock and counts slots, and a policy answers verbs: the store's scripts themselves, or a
plain queue to compare with.

    workload, workloads, csvfile   what arrives, how long it runs, which lanes are down when
    clock, store, policies         who is next: the real scripts, or a plain queue
    engine, lane                   discrete events: what happens next, and what that leads to
    record, report                 what happened, and what it comes to
    charts, page                   the report as one HTML page
"""
