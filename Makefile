# `make demo` runs the main job on loopback, `make test` passes the tests. `make help` lists the rest.
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null)
DATE    ?= $(shell TZ=UTC git show -s --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd HEAD 2>/dev/null)
APP      = github.com/proctor-ci/proctor/internal/app
LDFLAGS  = -s -w -buildid= -X $(APP).version=$(VERSION) -X $(APP).commit=$(COMMIT) -X $(APP).date=$(DATE)
BUILD    = CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)'
AGENT   ?= script
OUT     ?= bin
CLIS    ?= 3
PKGS    ?= ./...
FUZZFOR ?= 10s
IMAGE    = podman runc netavark golang-github-containers-common mmdebstrap
DEBIAN   = podman runc netavark golang-github-containers-common iproute2 default-jre-headless openssl
ROOT     = $(if $(filter 0,$(shell id -u)),,sudo )

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the binaries into bin/
	@mkdir -p bin
	$(BUILD) -o bin/ ./cmd/action ./cmd/proctor
	$(BUILD) -tags lambda.norpc -o bin/ ./cmd/webhook

.PHONY: program
program: ## build the one program that is released into OUT: the command line, and the action by the name proctor-action
	@mkdir -p $(OUT)
	$(BUILD) -o $(OUT)/proctor ./cmd/proctor

.PHONY: stamp
stamp: # what a build says of itself, for a shell
	@echo 'VERSION=$(VERSION) COMMIT=$(COMMIT) DATE=$(DATE)'

.PHONY: demo
demo: build ## run the main job on loopback: label, webhook, action, proof, draft pull request (AGENT=claude-code after make e2e-deps)
	@bin/proctor demo --agent $(AGENT) $(DEMO_FLAGS)

.PHONY: test
test: ## run the tests; of the long tables of whole runs the first rows; make rows plays the rest
	$(GO) test -timeout 60m ./...

.PHONY: race
race: ## run the tests under the race detector in random order
	$(GO) test -race -shuffle=on -timeout 60m ./...

.PHONY: kills
kills: ## kill a six-tick run at 100 random moments, resume it each time, and tell the figures
	@mkdir -p bin
	@PROCTOR_TEST_KILLS=100 $(GO) test -count=1 -timeout 60m -v -run 'TestKillsAtRandomMoments|TestKillsInTheMiddle' ./internal/app >bin/kills.log 2>&1 || { cat bin/kills.log; exit 1; }
	@grep -E '^ *--- |resume_test.go.*(seed|runs of)' bin/kills.log

.PHONY: rows
rows: ## play the rest of the long tables of whole runs, of which make test plays the first rows: cheats, stories on every forge, doctor's findings
	PROCTOR_TEST_ROWS=rest $(GO) test -count=1 -timeout 60m -run 'TestNoCheatingAgentEndsDone|TestEveryForgeTellsTheSameStory|TestDoctorNames' ./internal/app

CLAUDE = $(CURDIR)/e2e/agents/node_modules/@anthropic-ai/claude-code-linux-x64

.PHONY: rounds
rounds: ## play rounds on drafts of both forges with the real Claude Code: threads, a moved base, a conflict, CI that failed, a person's commit
	cd e2e/agents && npm ci --ignore-scripts --omit=optional --no-audit --no-fund
	PATH="$(CLAUDE):$$PATH" PROCTOR_TEST_AGENT=claude-code PROCTOR_TEST_ROWS=all $(GO) test -count=1 -timeout 60m -v -run 'TestAFixWorksOnThePull|TestAReview(ThatRequestsChanges|OnGitLab)StartsARound|TestARoundJoinsABase|TestEveryForgeTellsTheSameStory/CI_fails' ./internal/app

.PHONY: lint
lint: ## gofmt, go vet and, where they are installed, golangci-lint and actionlint
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo "run: gofmt -w ."; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags e2e ./...
	@if command -v golangci-lint >/dev/null; then golangci-lint run; else echo "golangci-lint is not installed here: CI runs it"; fi

.PHONY: e2e-deps
e2e-deps: ## install what the end-to-end tests need: by lock file agent CLIs, API descriptions, GitLab's CI schema and a runner of its jobs, actionlint; DynamoDB; from Debian podman, java and openssl
	@dpkg -s $(DEBIAN) >/dev/null 2>&1 || { $(ROOT)apt-get update -q && $(ROOT)apt-get install -qy --no-install-recommends $(DEBIAN); } || { echo "make e2e needs Debian's or Ubuntu's $(DEBIAN). Next: install them, or run it as root there"; exit 1; }
	cd e2e/agents && npm ci --ignore-scripts --omit=optional --no-audit --no-fund
	cd e2e/agents/node_modules/@github/copilot-linux-x64 && COPILOT_SEA_EXTRACT_ONLY=1 COPILOT_PKG_CACHE_HOME=. ./copilot
	cd e2e/api && npm ci --ignore-scripts --no-audit --no-fund
	cd e2e/gitlab && npm ci --ignore-scripts --no-audit --no-fund
	e2e/dynamodb/fetch bin/dynamodb
	cd e2e/tools && $(GO) build -o ../../bin/actionlint github.com/rhysd/actionlint/cmd/actionlint
	cd e2e/tools && $(GO) build -o ../../bin/aws-lambda-rie github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie

.PHONY: e2e
e2e: build e2e-deps ## what needs npm and podman: workflows linted, the demo with the real agent CLI, here and in containers, the forges' own API descriptions, a real image builder, the Terraform module
	bin/actionlint .github/workflows/*.yml templates/github/*.yml examples/*/.github/workflows/*.yml
	for story in cheating-agent budget-stop flaky-gate resume judge-rejection secret-caught; do bin/proctor demo $$story || exit 1; done
	bin/proctor demo --agent claude-code --sandbox strict
	bin/proctor demo --agent codex --sandbox strict
	for agent in gemini opencode copilot; do bin/proctor demo --agent $$agent || exit 1; done
	$(GO) test -tags e2e -count=1 -timeout 30m -parallel $(CLIS) ./internal/agent # CLIS of them at once: they mostly wait
	$(GO) test -tags e2e -count=1 -timeout 30m ./internal/probe ./e2e/api
	$(GO) test -tags e2e -count=1 -timeout 30m -v -run 'DynamoDB|Emulator' ./internal/webhook ./cmd/webhook
	$(GO) test -tags e2e -count=1 -timeout 30m -run 'Npm|GitLabs' ./internal/app
	$(GO) test -tags e2e -count=1 -timeout 10m -run 'OwnGates/(go|node|python|monorepo)' ./internal/doctor
	e2e/terraform/check
	$(GO) test -tags e2e -count=1 -timeout 30m ./e2e/container

.PHONY: image-deps
image-deps: # Podman, and what makes the image's base
	@dpkg -s $(IMAGE) >/dev/null 2>&1 || { $(ROOT)apt-get update -q && $(ROOT)apt-get install -qy --no-install-recommends $(IMAGE); } || { echo "make image and make act need Debian's or Ubuntu's $(IMAGE). Next: install them, or run it as root there"; exit 1; }

.PHONY: image
image: build image-deps ## build the image's targets on a Debian base that is made here, and run them: by hand, as Actions container, as GitLab job; print sizes
	e2e/image/build
	$(GO) test -tags e2e -count=1 -timeout 20m -v ./e2e/image
	$(GO) test -tags e2e -count=1 -timeout 10m -run InTheImage ./internal/app

.PHONY: act
act: build image-deps ## run the templates and both actions under act, a second runner of workflows: events, inputs, whole runs to the draft; makes the image where there is none
	cd e2e/act && npm ci --ignore-scripts --no-audit --no-fund
	cd e2e/tools && $(GO) build -o ../../bin/act github.com/nektos/act
	podman image exists localhost/proctor-e2e/slim || e2e/image/build
	$(GO) test -tags e2e -count=1 -timeout 20m ./e2e/act

.PHONY: report
report: ## look at the report page in the Chromium that is here: contrast, keyboard, widths, nothing loaded; screenshots in bin/report
	cd e2e/report && npm ci --ignore-scripts --no-audit --no-fund
	$(GO) test -tags e2e -count=1 -timeout 15m -run RealBrowser ./internal/evidence

.PHONY: cover
cover: ## run the tests and print what of each package its own tests reach, then of all; PKGS="./internal/gate ./internal/loop" for some
	@mkdir -p bin
	$(GO) test -timeout 60m -coverprofile=bin/cover.out $(PKGS)
	@$(GO) tool cover -func=bin/cover.out | tail -n 1

.PHONY: fuzz
fuzz: ## feed each fuzz target for FUZZFOR (10s); what fails is kept in its testdata
	@for file in $$(git grep -l '^func Fuzz' -- '*_test.go'); do \
	  for name in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]+)\(.*/\1/p' "$$file"); do \
	    echo "== $$name in $${file%/*}"; \
	    $(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZFOR) "./$${file%/*}" || exit 1; \
	  done; \
	done

.PHONY: bench
bench: ## measure the budgets of the design, side by side with what they are compared with
	$(GO) test -run '^$$' -bench . -benchmem ./...

.PHONY: clean
clean: ## remove what was built
	rm -rf bin
