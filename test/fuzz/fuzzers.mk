# libFuzzer programs, one for each target, in build/: read by GNU make from the build tree (make fuzzers).
# The engine (ENGINE: all_sources of mca_btl_velo/Makefile.inc) is built here once more, by clang and with its
# sanitizers; without what calls UCX (ucx_sources there), of which nothing is fuzzed but what comes before it.
targets := packets messages parcels addresses segments schedules
here := $(SOURCE)/test/fuzz
out := test/fuzz/build
engine := $(addprefix $(SOURCE)/,$(filter %.cc,$(ENGINE)) mca_btl_velo/fabric/ucx/absent.cc)
common := $(here)/victim.cc $(here)/packets.cc $(here)/messages.cc $(here)/parcels.cc $(here)/addresses.cc $(here)/segments.cc $(here)/schedules.cc
sources := $(engine) $(common)
objects := $(patsubst $(SOURCE)/%.cc,$(out)/%.o,$(sources))
flags := -std=c++20 -g -O2 -pthread -Wall -Wextra -fsanitize=address,undefined -fno-sanitize-recover=undefined \
	-I. -I$(SOURCE)/mca_btl_velo -I$(here) $(HWLOC_CFLAGS)

all: $(targets:%=$(out)/%)

$(out)/%.o: $(SOURCE)/%.cc
	@mkdir -p $(@D)
	$(FUZZ_CXX) $(flags) -fsanitize=fuzzer-no-link -MMD -MP -c $< -o $@

$(targets:%=$(out)/%): $(out)/%: $(objects)
	$(FUZZ_CXX) $(flags) -fsanitize=fuzzer -DVELO_FUZZ_TARGET=$(@F) $(here)/entry.cc $(objects) $(HWLOC_LIBS) -o $@

-include $(objects:.o=.d)
