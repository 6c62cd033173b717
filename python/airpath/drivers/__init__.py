"""Running a scenario: ``simulate`` on the virtual clock, ``emulate`` on the real one."""
