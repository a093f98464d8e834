"""Benchmarks: beside others in one run, memory of all answers, answers under cut-off requests.

`python -m tests.bench --help` lists the commands; only ratios travel from one machine to another.

====================  ================================================================================================
``contenders.py``     who is measured, as data: this project's tiers, its peers, and which ratios are shown
``starting/``         how a peer is started; its configuration or application is in ``peers/``
``stage.py``          what every run needs, started and stopped: release, stores, a key, instances, processors
``load.py``           one sample: wrk with ``requests.lua``, the rate, the processor time that an answer took
``verify.py``         before a run: everybody answers the same, and refuses a wrong key
``compare.py``        the alternating rounds; ``report.py`` their table and JSON, ``chart.py`` the picture
``shapes/``           every shape of traffic beside nginx, each ratio beside its floor
``held.py``           what it takes to hold every answer near
``cutoff.py``         a million requests of which every tenth is cut off by its client
====================  ================================================================================================
"""
