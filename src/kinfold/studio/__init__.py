"""The studio: the whole job in a browser. It has pages and a JSON interface, and no anonymization logic of its own.

server       the server on the loopback interface; guard: checks of requests; refusals: limits and error responses
sessions     the state of each browser: a table, a policy with its history, runs; each in one folder
job_queue    long jobs, each in a worker process; worker: the program of such a process; table_jobs: the jobs
*_routes     the interface, see docs/studio-interface.md
"""
