"""Benchmarks: beside others in one run, how cost grows, answers under cut-off requests.

`python -m tests.bench --help` lists the commands; only ratios travel from one machine to another.

====================  ================================================================================================
``contenders.py``     who is measured, as data: this project's tiers, its peers, and which ratios are shown
``starting/``         how a peer is started; its configuration or application is in ``peers/``
``stage.py``          what every run needs, started and stopped: release, stores, a key, instances, processors
``load.py``           one sample: wrk with ``requests.lua``, the rate, the processor time that an answer took
``verify.py``         before a run: everybody answers the same, and refuses a wrong key
``compare.py``        the alternating rounds; ``report.py`` their table and JSON, ``chart.py`` the picture
``shapes/``           every shape of traffic beside nginx, each ratio beside its floor
``growth.py``         cost against ZIP codes, years, workers
``cutoff.py``         a million requests of which every tenth is cut off by its client
====================  ================================================================================================
"""
