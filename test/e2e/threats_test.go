// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/journey"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
)

// typo is a node configuration with a typing error.
const typo = `apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: typo
spec:
  config:
    ignition:
      version: 3.2.0
    storage:
      files:
      - path: etc/not-absolute
        contents:
          source: data:,x
`

// badConfiguration sets a configuration for the pool that no machine can use, and checks that no machine is changed.
func (s *suite) badConfiguration(t *testing.T) {
	g := NewWithT(t)
	s.createCluster(t, 1)
	before, err := s.sample(t.Context())
	s.must(t, err)
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: journey.Namespace, Name: "typo"},
		Data:       map[string]string{"config": typo},
	}
	g.Expect(s.c.Create(t.Context(), config)).To(Succeed())
	s.configure(t, `[{"name":"typo"}]`)
	s.reach(t, "bad configuration reported", soon, journey.PoolCondition(s.c, s.cluster,
		hyperv1.NodePoolValidMachineConfigConditionType, "False", hyperv1.NodePoolValidationFailedReason))
	after, err := s.sample(t.Context())
	s.must(t, err)
	g.Expect(after.machineUIDs()).To(Equal(before.machineUIDs()), "a machine was touched for a configuration that cannot be used")
	g.Expect(after.secrets()).To(Equal(before.secrets()), "a configuration that cannot be used was handed out")
	s.configure(t, `[]`)
	s.reach(t, "configuration well again", soon,
		journey.PoolCondition(s.c, s.cluster, hyperv1.NodePoolValidMachineConfigConditionType, "True"))
	g.Expect(s.c.Delete(t.Context(), config)).To(Succeed())
	after, err = s.sample(t.Context())
	s.must(t, err)
	g.Expect(after.machineUIDs()).To(Equal(before.machineUIDs()))
	s.destroy(t)
}

func (s *suite) configure(t *testing.T, references string) {
	t.Helper()
	s.must(t, s.Type(t.Context(), "kubectl", "patch", "nodepool", s.cluster, "-n", journey.Namespace, "--type=merge",
		"-p", fmt.Sprintf(`{"spec":{"config":%s}}`, references)))
}

// deadBMC makes the BMC of the pool's next machine fail. Another machine must replace that one, which must be
// released when its BMC works again.
func (s *suite) deadBMC(t *testing.T) {
	s.createCluster(t, 1)
	rule, heal := s.fault(t, faults.Rule{Kind: faults.PowerError, Machines: 1})
	s.scale(t, s.cluster, 2)
	var dead string
	s.reach(t, "power error met", soon, func(ctx context.Context) (bool, string, error) {
		machine, err := s.powerless(ctx, rule)
		dead = machine
		return machine != "", "no machine has met the fault yet", err
	})
	s.reach(t, "two nodes ready, without the dead machine", 2*long, s.NodesReady(s.cluster, 2))
	NewWithT(t).Expect(s.inUse(t)).NotTo(HaveKey(dead), "the dead machine serves as a node")
	heal()
	s.scale(t, s.cluster, 1)
	s.reach(t, "one node left", long, s.NodesReady(s.cluster, 1))
	s.reach(t, "every allocation has one owner", long, s.owned)
	s.destroy(t)
}

// powerless returns the machine that a fault for one machine has affected; empty if there is none yet.
func (s *suite) powerless(ctx context.Context, id int) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+env.MAASAdmin+"/faults", nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var rules []faults.Rule
	if err := json.NewDecoder(response.Body).Decode(&rules); err != nil {
		return "", err
	}
	for _, rule := range rules {
		if rule.ID == id && len(rule.Hit) > 0 {
			return rule.Hit[0], nil
		}
	}
	return "", nil
}

// inUse maps the system IDs of MaasMachines to their names.
func (s *suite) inUse(t *testing.T) map[string]string {
	t.Helper()
	machines, err := journey.Machines(t.Context(), s.c, s.cluster, s.cluster)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	used := map[string]string{}
	for _, m := range machines {
		if m.Spec.SystemID != nil && m.DeletionTimestamp == nil {
			used[*m.Spec.SystemID] = m.Name
		}
	}
	return used
}

// anotherUsersKey puts the key of another MAAS user into the Secret. A condition must report it, and no machine may
// be released or reported as lost. With the right key, the cluster must continue to work.
func (s *suite) anotherUsersKey(t *testing.T) {
	g := NewWithT(t)
	s.createCluster(t, 2)
	before := sets.KeySet(s.allocations(t))
	s.setKey(t, s.Path("maas", "bob.key"))
	s.reach(t, "key of another user reported", soon, journey.ClusterCondition(s.c, s.cluster,
		string(hyperv1.PlatformCredentialsFound), "False"))
	s.scale(t, s.cluster, 1)
	s.reach(t, "machine asked to go", soon, func(ctx context.Context) (bool, string, error) {
		machines, err := journey.Machines(ctx, s.c, s.cluster, s.cluster)
		for _, m := range machines {
			if m.DeletionTimestamp != nil {
				return true, "", nil
			}
		}
		return len(machines) == 1, fmt.Sprintf("%d machines", len(machines)), err
	})
	machines := &infrav1.MaasMachineList{}
	g.Expect(s.c.List(t.Context(), machines, client.InNamespace(journey.HostedNamespace(s.cluster)))).To(Succeed())
	held := sets.New[string]()
	for _, m := range machines.Items {
		g.Expect(m.Status.FailureReason).To(BeNil(), "%s was given up", m.Name)
		held.Insert(*m.Spec.SystemID)
	}
	g.Expect(held.IsSuperset(sets.KeySet(s.allocations(t)))).To(BeTrue(), "of %v a machine has lost its owner: %v", before, held)
	s.setKey(t, s.keyFile)
	s.reach(t, "one node left", long, s.NodesReady(s.cluster, 1))
	s.reach(t, "every allocation has one owner", soon, s.owned)
	s.scale(t, s.cluster, 2)
	s.reach(t, "two nodes ready", long, s.NodesReady(s.cluster, 2))
	s.destroy(t)
}

// setKey writes the key of a file into the cluster's Secret.
func (s *suite) setKey(t *testing.T, file string) {
	t.Helper()
	g := NewWithT(t)
	key, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: journey.Namespace, Name: s.cluster +
		"-maas-credentials"}}
	g.Expect(s.c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret)).To(Succeed())
	read := secret.DeepCopy()
	secret.Data[maas.SecretKeyAPIKey] = []byte(strings.TrimSpace(string(key)))
	// Patch instead of update, because other clients may write to the Secret too.
	g.Expect(s.c.Patch(t.Context(), secret, client.MergeFrom(read))).To(Succeed())
}
