# Every target can be run on its own. `make` alone lists them.

# How long each fuzz target runs.
FUZZTIME ?= 20s
export FUZZTIME

.DEFAULT_GOAL := help
.PHONY: help build test lint race fuzz bench generate check-generated test-long clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build bin/govern
	go build -o bin/ ./cmd/govern

test: ## Run every test (with CI=true, none may be skipped)
	@.ci/deps
	@.ci/gotest -timeout 14m ./...

lint: ## Check Go, Rego and .ci: format, vet, staticcheck, opa check, opa test, selftest
	@.ci/lint
	@.ci/selftest

race: ## Run every test under the race detector
	@.ci/gotest -race -timeout 29m ./...

fuzz: ## Fuzz every fuzz target for FUZZTIME
	@.ci/fuzz

bench: ## Measure what govern costs, into bench/results.json and docs/performance.md; wants a machine that does nothing else
	go run ./bench -out bench/results.json
	go generate ./bench

generate: ## Write the generated files anew
	go generate ./...

check-generated: ## Fail if a generated file is stale
	@.ci/check-generated

test-long: ## Run the tests behind the build tag long
	@.ci/test-long

clean: ## Remove what was built
	rm -rf bin
