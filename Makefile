# Nothing but Go, make, gcc (for the race detector) and a Debian apt-get is
# needed; the peers are unpacked below .peers, and a missing one is a failure.
export FABSH_PEERS_REQUIRED := 1
# The race detector would let each process sleep for a second at its end.
export GORACE := atexit_sleep_ms=0
GO   := go
# Many tests wait for OpenSM, terminals and timers: more run at a time than there are cores.
CORES := $(shell getconf _NPROCESSORS_ONLN)
FLAGS := -timeout 15m -p $(shell expr $(CORES) + 1) -parallel $(shell expr $(CORES) \* 2)
TEST  := $(GO) test $(FLAGS)
# All packages, those that take longest first: none runs alone at the end.
ALL   := ./shell ./builtins ./fabric/routing/engines ./fabric/sim/run ./fabric/routing/repair ./mad/umad ./fabric/change/order ./shell/command ./fabric/sim/server ./...
# Packages that start goroutines, pass functions to such, or run whole sessions.
RACE   = $(shell git grep -lE '^[[:space:]]+go [a-z]|[.]Go[^a-zA-Z ]' -- '*.go' ':!*_test.go' | xargs -n 1 dirname | sort -u | sed 's,^,./,') \
	./builtins ./shell ./fabric/discover ./fabric/change/apply ./fabric/routing/... ./mad/capture

# All but those that start programs or sessions, or compute tables for minutes.
QUICK  = $(filter-out $(addprefix fabsh/,shell shell/command builtins mad/umad mad/ibsim fabric/sim/run fabric/sim/server fabric/routing/engines fabric/routing/repair fabric/routing/verify fabric/change/order fabric/change/certificate),$(shell $(GO) list ./...))

# $(call tests,FLAGS): runs tests, prints failures, and lists the ten slowest.
SUM    = $(GO) run gotest.tools/gotestsum@v1.13.0
tests  = @log=$$(mktemp) && trap 'rm -f '$$log EXIT && status=0 && \
	$(2) $(SUM) --format pkgname --hide-summary skipped --jsonfile $$log -- $(FLAGS) $(1) || status=$$?; \
	echo 'The ten slowest:' && $(SUM) tool slowest --threshold 1s --num 10 --jsonfile $$log; exit $$status

# What finds faults of access in the report: its version, and the SHA-512 of its package.
AXE    := 4.14.1
AXESUM := 1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5

.DEFAULT_GOAL := help
.PHONY: help build run quick test check check-more check-race check-kernel downloads lint generate peers prometheus chromium debootstrap kernel kernel-test kernel-ib-test fuzz soak bench dist deb clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the program: ./fabsh
	CGO_ENABLED=0 $(GO) build -o fabsh ./shell/fabsh

run: build ## opens the prompt on a simulated fat tree
	./fabsh -F sim

quick: export FABSH_PEERS_REQUIRED :=
quick: ## tests of packages that start no programs and compute little: for work
	$(call tests,-short $(QUICK))

test: peers ## all tests, those against ibsim, OpenSM and tshark included: about 6 minutes; FABSH_RDMA_CORE=FOLDER: tools of that source of rdma-core, too
	$(call tests,$(ALL))

check: ## what the continuous integration runs: test, then check-more
	@$(MAKE) test
	@$(MAKE) check-more

check-more: ## lint, tests of packages with goroutines with the race detector, and tests on a kernel in a virtual machine
	@$(MAKE) --jobs=2 --output-sync lint downloads
	@$(MAKE) --jobs=2 check-race check-kernel

downloads:
	@$(MAKE) peers && $(MAKE) kernel

# Beside a virtual machine, which has one processor and measures time: it goes first.
check-race:
	$(call tests,-race -short $(RACE),nice -n 5)

# Its output is printed at its end.
check-kernel:
	@{ $(MAKE) kernel-test && $(MAKE) kernel-ib-test; } >.kernel/log 2>&1; status=$$?; cat .kernel/log; exit $$status

lint: ## formatting, vet, staticcheck, module file
	@files=$$(gofmt -l *.go */) && test -z "$$files" || { echo "gofmt these: $$files"; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) mod tidy -diff

generate: ## the generated files, the man pages, and the lists of all attributes (tests say when they are stale)
	$(GO) test -run '^TestGenerated$$' ./mad/internal/gen -update
	$(GO) test -run '^TestAttributes$$' ./mad -update
	$(GO) test -run '^(TestReference|TestSchemas|TestHelp|TestComingFrom)$$' ./builtins -update
	$(GO) test -run '^TestGenerated$$' ./fabric/format -update
	$(GO) test -run '^TestMan$$' ./shell -man
	$(GO) test -run '^TestLayersPicture$$' ./shell -update

peers: ## unpacks ibsim, OpenSM, infiniband-diags, ibutils, tshark and others into .peers; installs nothing
	@mad/ibsim/ibsimtest/peers.sh .peers

prometheus: ## unpacks Debian's Prometheus into .prometheus, for make soak; installs nothing
	@mad/ibsim/ibsimtest/peers.sh .prometheus prometheus

chromium: ## unpacks Debian's Chromium, and npm's axe-core, into .chromium, for make soak; installs nothing
	@mad/ibsim/ibsimtest/peers.sh .chromium chromium
	@test -e .chromium/axe.min.js || { cd .chromium && npm pack --silent axe-core@$(AXE) >/dev/null && \
		echo "$(AXESUM)  axe-core-$(AXE).tgz" | sha512sum -c --quiet && tar xzOf axe-core-$(AXE).tgz package/axe.min.js >axe.new && \
		mv axe.new axe.min.js && rm axe-core-$(AXE).tgz; }

debootstrap: ## unpacks Debian's debootstrap into .debootstrap, for make soak; installs nothing
	@mad/ibsim/ibsimtest/peers.sh .debootstrap debootstrap

kernel: ## unpacks Debian's kernel, and QEMU, into .kernel; installs nothing
	@mad/umad/umadtest/kernel.sh .kernel

kernel-test: kernel ## the umad transport on a real kernel in a virtual machine, over Soft-RoCE
	CGO_ENABLED=0 $(TEST) -count=1 -v -tags kerneltest -run '^TestKernel' ./mad/umad

kernel-ib-test: kernel peers ## OpenSM, infiniband-diags and fabsh on a real kernel's umad devices, over virtual InfiniBand; FABSH_RDMA_CORE=FOLDER: tools of that source of rdma-core, too
	CGO_ENABLED=0 $(TEST) -count=1 -v -tags kernelibtest -run '^TestKernel' ./mad/umad/umadtest

fuzz: ## every fuzz target, FUZZTIME each (10s); with FUZZMIN=N, at least N executions each
	@for p in $$($(GO) list ./...); do for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
		echo "$$p $$f"; GO="$(GO)" sh shell/dist/fuzz.sh $$p $$f $${FUZZTIME:-10s} $${FUZZMIN:-0} || exit 1; done; done

soak: export FABSH_SOAK := 1
soak: peers prometheus chromium debootstrap ## long fuzzing, repeated tests, tests on a kernel
	$(MAKE) fuzz FUZZTIME=5m FUZZMIN=100000
	$(TEST) -timeout 2h -race -count 10 ./...
	$(MAKE) kernel-test kernel-ib-test

bench: peers ## measurements, ours beside the peer's of the same run, medians of 5
	@f=$$(mktemp) && trap 'rm -f '$$f EXIT && \
	if $(GO) test -run '^$$' -bench . -benchmem -count 5 ./... >$$f; \
	then $(GO) tool benchstat -confidence 0.9 fabsh=$$f; else cat $$f; exit 1; fi

# Packages: the same bytes for the same commit, so no time of the build, no path.
# Functions begin at multiples of 16 bytes, not 32: 0.2 MB less.
NFPM   := github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2
EPOCH   = $(shell git log -1 --format=%ct)
VERSION = $(shell sed -n 's/^const Version = "\(.*\)"/\1/p' fabsh.go)
# Before the release 0.10.0, 0.10.0~DATE+COMMIT, which dpkg sorts below it.
RELEASE = $(VERSION:-dev=~$(shell date -u -d @$(EPOCH) +%Y%m%d.%H%M)+$(shell git rev-parse --short=12 HEAD))
STATIC  = CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=true -ldflags '-s -w -funcalign=16'

dist: ## dist/: static programs for Linux, and for macOS (snapshots, simulation), with SHA256SUMS
	@rm -rf dist && mkdir dist
	@for t in linux-amd64 linux-arm64 darwin-amd64 darwin-arm64; do echo dist/fabsh-$$t; \
		GOOS=$${t%-*} GOARCH=$${t#*-} $(STATIC) -o dist/fabsh-$$t ./shell/fabsh || exit 1; done
	@cd dist && sha256sum fabsh-* >SHA256SUMS

deb: ## dist/: Debian packages, amd64 and arm64, with man pages, completion, examples and systemd units
	@mkdir -p dist/man dist/completion
	@for p in shell/dist/man/*.[17]; do gzip -9nc $$p >dist/man/$${p##*/}.gz || exit 1; done
	@$(GO) build -o dist/fabsh ./shell/fabsh && \
		for s in bash zsh fish; do dist/fabsh completion $$s >dist/completion/fabsh.$$s || exit 1; done
	@for a in amd64 arm64; do GOOS=linux GOARCH=$$a $(STATIC) -o dist/fabsh ./shell/fabsh && \
		ARCH=$$a RELEASE=$(RELEASE) SOURCE_DATE_EPOCH=$(EPOCH) \
		$(GO) run $(NFPM) package -f shell/dist/nfpm.yaml -p deb -t dist || exit 1; done
	@rm -rf dist/fabsh dist/man dist/completion

clean: ## removes what make made
	rm -rf fabsh .peers .prometheus .chromium .debootstrap .kernel dist
