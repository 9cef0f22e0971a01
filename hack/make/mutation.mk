# What is changed: the packages that decide something about clusters, pools and machines.
MUTATE ?= $(addprefix ./hypershift-operator/controllers/,nodepool hostedcluster etcdbackup) \
	$(addprefix ./hypershift-operator/controllers/hostedcluster/,cluster deletion namespace orphans plugin rbac secrets) ./hypershift-operator/webhook \
	$(addprefix ./hypershift-operator/platform/,agent aws kubevirt maas registry) \
	$(addprefix ./control-plane-operator/controllers/,hostedcontrolplane hostedcontrolplane/infra hostedcontrolplane/pki etcd etcdbackup breakglass) \
	$(addprefix ./control-plane-operator/hostedclusterconfigoperator/controllers/,address connection csrapproval inplaceupgrade node nodecount reencryption \
		resources revocation workloads) \
	$(addprefix ./cluster-api-provider-maas/internal/,machine machinetemplate cluster inventory lifecycle placement staticip) \
	$(addprefix ./ignition-server/,token endpoint payload nodeconfig)
# How many changes of each, and which sample.
MUTANTS ?= 30
SEED ?= 1
# How long each package may take, as in 12m; 0 for as long as it needs.
WITHIN ?= 0

.PHONY: test-mutation
test-mutation: kube-binaries ## Make small wrong changes in the controllers, and see whether the tests notice
	go run ./hack/mutation $(addprefix --package ,$(MUTATE)) --max $(MUTANTS) --seed $(SEED) --within $(WITHIN)
