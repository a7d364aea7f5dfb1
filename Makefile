# Nothing but Go, make, gcc (for the race detector) and a Debian apt-get is
# needed; the peers are unpacked below .peers, and a missing one is a failure.
export FABSH_PEERS_REQUIRED := 1
# The race detector would let each process sleep for a second at its end.
export GORACE := atexit_sleep_ms=0
GO   := go
# Many tests wait for OpenSM, terminals and timers: more run at a time than there are cores.
CORES := $(shell getconf _NPROCESSORS_ONLN)
FLAGS := -timeout 30m -p $(shell expr $(CORES) + 1) -parallel $(shell expr $(CORES) \* 2)
TEST  := $(GO) test $(FLAGS)
# All packages, those that take longest first: none runs alone at the end.
ALL   := ./shell ./builtins ./fabric/routing/engines ./fabric/sim/run ./fabric/routing/repair ./mad/umad ./fabric/change/order ./shell/command ./fabric/sim/server ./...
# Packages that start goroutines, pass functions to such, or run whole sessions; those that take longest first.
# With -short, tests whose results alone are checked (routingtest.ResultsOnly) are left to test.
RACE   = ./shell ./builtins ./fabric/routing/engines ./fabric/routing/repair ./shell/command ./fabric/change/order $(shell git grep -lE '^[[:space:]]+go [a-z]|[.]Go[^a-zA-Z ]' -- '*.go' ':!*_test.go' | xargs -n 1 dirname | sort -u | sed 's,^,./,') \
	./fabric/discover ./fabric/change/apply ./fabric/routing/... ./mad/capture

# All but those that start programs or sessions, or compute tables for minutes.
QUICK  = $(filter-out $(addprefix fabsh/,shell shell/command builtins mad/umad mad/ibsim fabric/sim/run fabric/sim/server fabric/routing/engines fabric/routing/repair fabric/routing/verify fabric/change/order fabric/change/certificate),$(shell $(GO) list ./...))

# $(call tests,FLAGS): runs tests, prints failures, and lists the ten slowest.
SUM    = $(GO) tool -modfile=shell/dist/tools.mod gotestsum
tests  = @log=$$(mktemp) && trap 'rm -f '$$log EXIT && status=0 && \
	$(SUM) --format pkgname --hide-summary skipped --jsonfile $$log -- $(FLAGS) $(1) || status=$$?; \
	echo 'The ten slowest:' && $(SUM) tool slowest --threshold 1s --num 10 --jsonfile $$log; exit $$status

# What finds faults of access in the report: its version, and the SHA-512 of its package.
AXE    := 4.14.1
AXESUM := 1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5

# The modules of the extension for VS Code, from npm.
MODULES := examples/editors/vscode/node_modules

.DEFAULT_GOAL := help
.PHONY: help build run quick test check check-more check-race check-kernel downloads lint generate peers prometheus chromium debootstrap kernel kernel-test kernel-ib-test fuzz soak fresh bench install uninstall release dist image deb vsix vuln clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the program: ./fabsh
	CGO_ENABLED=0 $(GO) build -o fabsh ./shell/fabsh

run: build ## opens the prompt on a simulated fat tree
	./fabsh -F sim

# Nothing is built here: root may have no Go.
PREFIX := /usr/local
install: ## after make build: the program, man pages and completion below PREFIX (/usr/local)
	@test -x fabsh || { echo "install: no ./fabsh; run make build first" >&2; exit 1; }
	install -D -m 755 fabsh "$(DESTDIR)$(PREFIX)/bin/fabsh"
	@for p in shell/dist/man/*; do install -D -m 644 $$p "$(DESTDIR)$(PREFIX)/share/man/man$${p##*.}/$${p##*/}" || exit 1; done
	@cd "$(DESTDIR)$(PREFIX)/share" && mkdir -p $(dir $(COMPLETIONS)) && \
		for f in $(COMPLETIONS); do case $$f in bash*) s=bash;; zsh*) s=zsh;; *) s=fish;; esac; ../bin/fabsh completion $$s >$$f || exit 1; done
COMPLETIONS := bash-completion/completions/fabsh zsh/site-functions/_fabsh fish/vendor_completions.d/fabsh.fish

uninstall: ## removes what make install installed below PREFIX
	@cd "$(DESTDIR)$(PREFIX)" && rm -f bin/fabsh share/man/man1/fabsh.1 share/man/man[17]/fabsh-*.[17] $(COMPLETIONS:%=share/%)


quick: export FABSH_PEERS_REQUIRED :=
quick: ## tests of packages that start no programs and compute little: for work
	$(call tests,-short $(QUICK))

test: peers ## all tests, those against ibsim, OpenSM and tshark included: 15 to 20 minutes on two cores; FABSH_RDMA_CORE=FOLDER: tools of that source of rdma-core, too
	$(call tests,$(ALL))

check: ## what the continuous integration runs: test, then check-more
	@$(MAKE) test
	@$(MAKE) check-more

check-more: ## lint, tests of packages with goroutines with the race detector, and tests on a kernel in a virtual machine
	@$(MAKE) --jobs=2 --output-sync lint downloads
	@$(MAKE) check-kernel check-race

downloads:
	@$(MAKE) peers && $(MAKE) kernel

check-race:
	$(call tests,-race -short -vet=off -timeout 50m $(RACE))

# Alone: beside other tests, programs in the virtual machine have taken 17 times as long.
check-kernel: kernel-test kernel-ib-test

lint: ## formatting, vet, staticcheck, module file
	@files=$$(gofmt -l *.go */) && test -z "$$files" || { echo "gofmt these: $$files"; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) mod tidy -diff
	@for d in image vsix; do (cd shell/dist/$$d && $(GO) vet . && $(GO) mod tidy -diff) || exit 1; done

generate: ## the generated files, the man pages, and the lists of all attributes (tests say when they are stale)
	$(GO) test -run '^TestGenerated$$' ./mad/internal/gen -update
	$(GO) test -run '^TestAttributes$$' ./mad -update
	$(GO) test -run '^(TestReference|TestSchemas|TestHelp|TestComingFrom)$$' ./builtins -update
	$(GO) test -run '^TestGenerated$$' ./fabric/format -update
	$(GO) test -run '^TestMan$$' ./shell -man
	$(GO) test -run '^(TestLayersPicture|TestSessionPicture)$$' ./shell -update

peers: ## unpacks ibsim, OpenSM, infiniband-diags, ibutils, tshark and others into .peers; installs nothing
	@mad/ibsim/ibsimtest/peers.sh .peers
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory $(MODULES); \
		else echo "peers: no npm: the session of VS Code is not tested" >&2; fi

prometheus: ## unpacks Debian's Prometheus into .prometheus, for make soak; installs nothing
	@mad/ibsim/ibsimtest/peers.sh .prometheus prometheus

chromium: ## unpacks Debian's Chromium, and npm's axe-core, into .chromium, for make soak; installs nothing
	@mad/ibsim/ibsimtest/peers.sh .chromium chromium
	@test -e .chromium/axe.min.js || { cd .chromium && npm pack --silent axe-core@$(AXE) >/dev/null && \
		echo "$(AXESUM)  axe-core-$(AXE).tgz" | sha512sum -c --quiet && tar xzOf axe-core-$(AXE).tgz package/axe.min.js >axe.new && \
		mv axe.new axe.min.js && rm axe-core-$(AXE).tgz; }

debootstrap: ## unpacks Debian's debootstrap into .debootstrap, for make fresh and soak; installs nothing
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
	$(MAKE) fresh

fresh: debootstrap ## make run, test, install and deb of the last commit by an ordinary user on a minimal Debian, made with debootstrap; needs root
	@test $$(id -u) = 0 || { echo "fresh: chroot(2) needs root" >&2; exit 1; }
	CGO_ENABLED=0 $(TEST) -timeout 2h -count=1 -v -tags freshtest -run '^TestFresh$$' ./shell

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

# Each target below leaves the checksums of all that dist/ has.
SUMS    = @cd dist && find * -maxdepth 0 -type f ! -name SHA256SUMS | LC_ALL=C sort | xargs sha256sum >SHA256SUMS
# The SBOM contains a checksum of the program that makes it: -trimpath, no cgo.
SBOM   := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
VULN   := golang.org/x/vuln/cmd/govulncheck@v1.9.0

release: ## all files of a release in dist/, of the last commit; the same commit gives the same bytes
	@test -z "$$(git status --porcelain)" || { echo "release: files differ from the last commit; commit them first" >&2; exit 1; }
	@$(MAKE) dist deb image
	@sh shell/dist/notes.sh >dist/RELEASE_NOTES.md
	$(SUMS)

dist: ## dist/: static programs for Linux, and for macOS (snapshots, simulation), each with its SBOM (CycloneDX), and SHA256SUMS
	@mkdir -p dist && rm -f dist/fabsh-*
	@for t in linux-amd64 linux-arm64 darwin-amd64 darwin-arm64; do echo dist/fabsh-$$t; \
		GOOS=$${t%-*} GOARCH=$${t#*-} $(STATIC) -o dist/fabsh-$$t ./shell/fabsh && \
		CGO_ENABLED=0 $(GO) run -trimpath $(SBOM) bin -json -std -noserial -notimestamp -version $(RELEASE) -output dist/fabsh-$$t.cdx.json dist/fabsh-$$t || exit 1; done
	$(SUMS)

image: dist ## dist/: an OCI image, amd64 and arm64, from an empty base (podman load -i dist/fabsh-image.tar)
	@$(GO) run -C shell/dist/image . -version $(VERSION) -epoch $(EPOCH) -out ../../../dist/fabsh-image.tar $(foreach a,amd64 arm64,$(a)=../../../dist/fabsh-linux-$(a))
	$(SUMS)

vuln: ## known vulnerabilities in what the program calls (govulncheck); needs https://vuln.go.dev, or GOVULNDB
	$(GO) run $(VULN) ./...

deb: ## dist/: Debian packages, amd64 and arm64, with man pages, completion, examples and systemd units
	@rm -f dist/fabsh_* && mkdir -p dist/man dist/completion
	@for p in shell/dist/man/*.[17]; do gzip -9nc $$p >dist/man/$${p##*/}.gz || exit 1; done
	@$(GO) build -o dist/fabsh ./shell/fabsh && \
		for s in bash zsh fish; do dist/fabsh completion $$s >dist/completion/fabsh.$$s || exit 1; done
	@for a in amd64 arm64; do GOOS=linux GOARCH=$$a $(STATIC) -o dist/fabsh ./shell/fabsh && \
		ARCH=$$a RELEASE=$(RELEASE) SOURCE_DATE_EPOCH=$(EPOCH) \
		$(GO) run $(NFPM) package -f shell/dist/nfpm.yaml -p deb -t dist || exit 1; done
	@rm -rf dist/fabsh dist/man dist/completion
	$(SUMS)

# The extension: its modules have the checksums of package-lock.json, and run nothing when they are unpacked.
$(MODULES): examples/editors/vscode/package-lock.json
	@cd $(@D) && npm ci --silent --ignore-scripts --no-audit --no-fund && touch node_modules

vsix: $(MODULES) ## dist/: the extension for VS Code, with its modules, which npm fetches: code --install-extension dist/fabsh.vsix
	@mkdir -p dist && $(GO) run -C shell/dist/vsix . -epoch $(EPOCH) -license ../../../LICENSE -out ../../../dist/fabsh.vsix ../../../examples/editors/vscode
	$(SUMS)

clean: ## removes what make made
	rm -rf fabsh .peers .prometheus .chromium .debootstrap .kernel dist $(MODULES)
