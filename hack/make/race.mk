# One package: go test -race PACKAGE. The race detector needs cgo and gcc, which the other targets do without, so everything is compiled
# once more. `make test` does it with what is compiled in a minute.
.PHONY: test-race
test-race: kube-binaries ## Run the tests of every package under the race detector, without the environment
	go run ./hack/test race-all
