# The parts of contrib/check, side by side: make shares its jobs among them, so that some compile while tests of others
# wait for mpirun. What a part prints goes to a log of its name, how it ended to NAME.outcome.
#
#   SOURCE       the tree
#   ALL          not empty: nothing is left out
#   PARTS        those that were asked for
#   BEGIN, TOOK  when the check has begun, and in how many seconds the same passed the last time
#   MPI_FILES, TOOL_FILES, MTL_ARGUMENTS, PROGRAM, CASES
#                not empty: these files of tests with MPI and of tools; more for the pytest of mtl; for the part cases, the programs
#                and a filter of GoogleTest
#   arguments    in the environment: for pytest

# $(1): commands.
told = @+echo "check: $@ begins"; begin=$$(date +%s); if ( $(1) ) >$@.log 2>&1; then outcome=passed; else outcome=FAILED; fi; \
	now=$$(date +%s); echo $$outcome >$@.outcome; \
	test $$outcome = passed || { echo "--- $@ FAILED"; sed -n '/=== \(ERRORS\|FAILURES\) ===/,$$p' $@.log | grep . || tail -n 100 $@.log; }; \
	echo "check: $@ $$outcome after $$((now - begin)) s$(left)"; test $$outcome = passed
# Words about what is still to come.
left = $$(for part in $(PARTS); do test -e $$part.outcome || printf ' %s' $$part; done | sed 's/^/; still to come:/')$(if $(TOOK),$$(test $$((BEGIN + TOOK)) -le $$now || echo ", $$(((BEGIN + TOOK - now + 59) / 60)) min left"))
# One pass over tests with mpirun, where all that it needs is built.
pytest = $(MAKE) check-mpi MPI_NEEDS= PYTEST_ARGS="$$arguments $(1)"
TESTS = $(or $(MPI_FILES),$(SOURCE)/test/mpi)

# -Og compiles in a third more time than -O0, and its tests run in half. Under sanitizers -O1 takes twice as long to compile; and
# texts for each place where behaviour may be undefined take as long as all else. A trap there tells the place; it cannot check
# `vptr`.
OPTIMIZED = CXXFLAGS='-O1 -g1 $(SANITIZED)'
SIMPLE = $(foreach language,C CXX,$(language)FLAGS='-Og -g1 $(TRAP)')
export ASAN_OPTIONS := handle_sigill=1:$(ASAN_OPTIONS)
# What goes through millions of events.
LONG = test/schedule_tests test/sim_tests
# A part of them; make distcheck runs all.
AMOUNTS = VELO_SIM_FEW=yes VELO_SCHEDULE_EVENTS=150000 VELO_SCHEDULE_PACKETS=150000 VELO_EXPLORE_STATES=200 VELO_STRESS_PACKETS=50000
# $(1): test programs, which are there; nothing is built.
run = $(AMOUNTS) $(MAKE) check-TESTS check_PROGRAMS='$(1)' check_LIBRARIES= dist_check_SCRIPTS= VERBOSE=1

ifdef ALL
TRAP =
arguments += --all
THREADED = test/unit_tests test/stress_tests
RUN_THREADED = $(call run,$(THREADED))
CHECKED = --policies dynamic,lazy
CHECKED_MTL = $(TESTS)
schedules-built: SANITIZED = $$(VELO_SANITIZE)
# All that they link has sanitizers.
LONG_IN = sanitized
else
LONG_IN = .
TRAP = -fsanitize-undefined-trap-on-error
THREADED = test/thread_tests
# Of schedules in one thread a policy is enough here.
RUN_THREADED = VELO_STRESS_PACKETS=20000 timeout -k 5 900 $(THREADED) --gtest_brief=1 \
	--gtest_filter='-PerformerTest/EveryPolicy.*/1:PerformerTest/EveryPolicy.*/2:PerformerTest/EveryPolicy.*/3'
CHECKED = --policies lazy
CHECKED_MTL =
endif

.PHONY: configured plugin simulator tools-built schedules-built programs threads-built checked-built schedules unit threads distcheck mpi mtl tools checked user cases

# For programs with schedules.
SCHEDULES = libvelo-goal/libvelo-goal.so contrib/goal/velo-goal

# Where ccache is installed and no other compiler is named it is used.
CACHED = $(and $(filter default,$(origin CC)),$(filter default,$(origin CXX)),$(shell command -v ccache >/dev/null && echo "CC='ccache gcc' CXX='ccache g++'"))
configured:
	@test Makefile -nt $(SOURCE)/configure || $(SOURCE)/configure -q --enable-sanitizers $(CACHED)
# What most others wait for. What is installed is compiled as users do.
plugin: configured
	$(call told,$(MAKE) stage-plugin MPI_NEEDS=mca_btl_velo.so && \
		$(MAKE) $(SCHEDULES) contrib/pvars/libvelo-pvars.so contrib/benchmark/velo-mpi-bench)
# Two parts that are built side by side link it.
simulator: plugin
	$(call told,$(MAKE) contrib/sim/libsimulator.a)
tools-built: simulator
	$(call told,$(MAKE) all)
schedules-built: simulator
	$(call told,mkdir -p $(LONG_IN) && cd $(LONG_IN) && { test Makefile -nt $(SOURCE)/configure || \
		$(SOURCE)/configure -q --enable-sanitizers $(CACHED); } && $(MAKE) $(LONG) $(OPTIMIZED))
programs: schedules-built
	$(call told,$(MAKE) test-programs $(SIMPLE))
threads-built: plugin
	$(call told,mkdir -p threads && cd threads && { test Makefile -nt $(SOURCE)/configure || $(SOURCE)/configure --enable-sanitizers=thread $(CACHED); } && \
		$(MAKE) mca_btl_velo/libvelo_checked.a $(OPTIMIZED) && $(MAKE) $(THREADED) $(SIMPLE))
checked-built: plugin
	$(call told,mkdir -p checked && cd checked && { test Makefile -nt $(SOURCE)/configure || \
		$(SOURCE)/configure --enable-checked --disable-lto $(CACHED) CFLAGS='-O1 -g1' $(OPTIMIZED); } && \
		$(MAKE) stage-plugin MPI_NEEDS='mca_btl_velo.so $(SCHEDULES)')

mpi: plugin
	$(call told,$(call pytest,) MPI_TESTS='$(TESTS)' MTL_TESTS=)
mtl: plugin
	$(call told,$(call pytest,$(MTL_ARGUMENTS)) MPI_TESTS= $(if $(MPI_FILES),MTL_TESTS='$(MPI_FILES)'))
tools: tools-built
	$(call told,$(call pytest,) MPI_TESTS='$(or $(TOOL_FILES),$$(TOOL_TESTS))' MTL_TESTS=)
checked: checked-built
	$(call told,cd checked && $(call pytest,$(CHECKED)) MPI_TESTS='$(TESTS)' MTL_TESTS='$(CHECKED_MTL)')
schedules: schedules-built
	$(call told,cd $(LONG_IN) && $(call run,$(LONG)) TEST_SUITE_LOG=schedules-suite.log AM_LOG_FLAGS='-k 5 2700')
unit: tools-built programs
	$(call told,$(AMOUNTS) $(MAKE) check AM_LOG_FLAGS='-k 5 1800' TESTS='$$(filter-out $(LONG),$$(check_PROGRAMS) $$(dist_check_SCRIPTS))' VERBOSE=1)
cases: configured
	$(call told,$(MAKE) $(PROGRAM) $(if $(filter $(LONG),$(PROGRAM)),$(OPTIMIZED),$(SIMPLE)) && for program in $(sort $(PROGRAM)); do \
		$(AMOUNTS) GTEST_BRIEF=$${GTEST_BRIEF-1} timeout -k 5 1800 $$program --gtest_filter='$(patsubst :%,%,$(CASES))' || exit 1; done && ! grep -q '] 0 tests from' $@.log)
# UCX's hooks run in threads that ThreadSanitizer has taken leave of.
threads: threads-built
	$(call told,cd threads && export UCX_MEM_MMAP_HOOK_MODE=none && $(RUN_THREADED))
distcheck: plugin
	$(call told,$(MAKE) distcheck)
user: tools-built
	$(call told,$(MAKE) check-user PYTEST_ARGS="$$arguments")
