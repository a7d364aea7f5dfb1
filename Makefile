# Nothing but Go, make, gcc (for the race detector) and a Debian apt-get is
# needed; the peers are unpacked below .peers, and a missing one is a failure.
export FABSH_PEERS_REQUIRED := 1
GO   := go
TEST := $(GO) test -timeout 15m

.DEFAULT_GOAL := help
.PHONY: help build run test check lint generate peers prometheus kernel kernel-test kernel-ib-test fuzz soak bench clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the program: ./fabsh
	CGO_ENABLED=0 $(GO) build -o fabsh ./shell/fabsh

run: build ## opens the prompt on a simulated fat tree
	./fabsh -F sim

test: peers ## all tests, those against ibsim, OpenSM and tshark included
	$(TEST) ./...

check: lint peers ## what the continuous integration runs: lint, all tests with the race detector, and those on a kernel
	$(TEST) -race ./...
	$(MAKE) kernel-test kernel-ib-test

lint: ## formatting, vet, staticcheck, module file
	@files=$$(gofmt -l .); test -z "$$files" || { echo "gofmt these: $$files"; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) mod tidy -diff

generate: ## the generated files, and the lists of all attributes (tests say when they are stale)
	$(GO) test -run '^TestGenerated$$' ./mad/internal/gen -update
	$(GO) test -run '^TestAttributes$$' ./mad -update
	$(GO) test -run '^(TestReference|TestSchemas|TestHelp)$$' ./builtins -update
	$(GO) test -run '^TestGenerated$$' ./fabric/format -update

peers: ## unpacks ibsim, OpenSM, infiniband-diags, ibutils and tshark into .peers; installs nothing
	@mad/ibsim/ibsimtest/peers.sh .peers

prometheus: ## unpacks Debian's Prometheus into .prometheus, for make soak; installs nothing
	@mad/ibsim/ibsimtest/peers.sh .prometheus prometheus

kernel: ## unpacks Debian's kernel, and QEMU, into .kernel; installs nothing
	@mad/umad/umadtest/kernel.sh .kernel

kernel-test: kernel ## the umad transport on a real kernel in a virtual machine, over Soft-RoCE
	CGO_ENABLED=0 $(TEST) -count=1 -v -tags kerneltest -run '^TestKernel' ./mad/umad

kernel-ib-test: kernel peers ## OpenSM, infiniband-diags and fabsh on a real kernel's umad devices, over virtual InfiniBand
	CGO_ENABLED=0 $(TEST) -count=1 -v -tags kernelibtest -run '^TestKernel' ./mad/umad/umadtest

fuzz: ## every fuzz target, FUZZTIME each (10s)
	@for p in $$($(GO) list ./...); do for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
		echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $${FUZZTIME:-10s} $$p || exit 1; done; done

soak: export FABSH_SOAK := 1
soak: peers prometheus ## long fuzzing, repeated tests, tests on a kernel
	$(MAKE) fuzz FUZZTIME=5m
	$(TEST) -timeout 2h -race -count 10 ./...
	$(MAKE) kernel-test kernel-ib-test

bench: peers ## measurements, ours beside the peer's of the same run, medians of 5
	@f=$$(mktemp) && trap 'rm -f '$$f EXIT && \
	if $(GO) test -run '^$$' -bench . -benchmem -count 5 ./... >$$f; \
	then $(GO) tool benchstat -confidence 0.9 fabsh=$$f; else cat $$f; exit 1; fi

clean: ## removes what make made
	rm -rf fabsh .peers .prometheus .kernel
