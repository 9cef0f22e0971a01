# One package: CGO_ENABLED=1 go test -race PACKAGE. The race detector needs cgo and gcc, which the other targets do without, so everything is compiled
# once more.
.PHONY: test-race
test-race: kube-binaries ## Run the tests of every package under the race detector, without the environment
	go run ./hack/test race
