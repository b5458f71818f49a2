"""What keeps the system going, without Celery: dispatcher, janitor, reporter.

The rule: a service is an agent with one method, `step()`, that does what is due now and returns;
`run_forever` is a loop over it. Tests and the simulator call `step()`.
"""
