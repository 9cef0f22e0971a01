// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/journey"
)

// image is the MAAS image of the machines. Ignition configures it, as it configures RHCOS.
const image = "custom/kubernetes-node"

// patches are the patches of the line that the cluster starts with and is upgraded to.
var patches = [2]string{"10", "11"}

// servedFile is the file in the configuration that the release's ignition-server serves.
const servedFile = "etc/served-by-release"

func (s *suite) build(t *testing.T) {
	ref := os.Getenv(refVariable)
	if ref == "" {
		ref = "HEAD"
	}
	var err error
	s.sources, err = exportSources(t.Context(), os.Getenv(upstreamVariable), ref, filepath.Join(s.Bin, "openshift"))
	s.must(t, err)
	s.Say("%s is commit %s of %s: OpenShift %s, Kubernetes %s", ref, s.sources.commit, s.sources.date, s.sources.line,
		s.sources.kubernetes)
	s.must(t, s.sources.build(t.Context(), s.Say))
}

func (s *suite) pushPayload(t *testing.T) {
	for i, patch := range patches {
		s.versions[i] = s.sources.line + "." + patch
	}
	fake, err := buildFake(t.Context(), t.TempDir())
	s.must(t, err)
	s.payload, err = newPayload(t.Context(), s.e, s.sources, fake)
	s.must(t, err)
	for i, version := range s.versions {
		s.releases[i], err = s.payload.release(t.Context(), version)
		s.must(t, err)
	}
}

// create installs the operator, creates the HostedCluster, and does the work of the programs that are fakes.
func (s *suite) create(t *testing.T) {
	ctx := t.Context()
	s.must(t, s.replaceByFakes(ctx))
	s.must(t, s.Install(ctx))
	s.must(t, s.createCluster(ctx))
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: hosted, Name: cluster}}
	s.reach(t, "hosted control plane created", soon, func(ctx context.Context) (bool, string, error) {
		err := s.c.Get(ctx, client.ObjectKeyFromObject(hcp), hcp)
		return err == nil, "", client.IgnoreNotFound(err)
	})
	s.must(t, s.featureGates(ctx, s.versions[0]))
	s.reach(t, "API server of the hosted cluster ready", long, func(ctx context.Context) (bool, string, error) {
		unready := s.saveKubeconfig(ctx)
		if unready == nil {
			_, unready = s.Read(ctx, s.Guest(cluster, "get", "--raw", "/readyz")...)
		}
		return unready == nil, s.pods(ctx), nil
	})
	s.reach(t, "CRDs and namespaces of the hosted cluster created", soon, func(ctx context.Context) (bool, string, error) {
		err := s.prepareGuest(ctx)
		return err == nil, "", err
	})
	s.reach(t, journey.StageAvailable, long, journey.ClusterAvailable(s.c, cluster))
}

// replaceByFakes applies the rule that starts the fake program in place of programs that are not built.
func (s *suite) replaceByFakes(ctx context.Context) error {
	rule, err := os.ReadFile(filepath.Join("testdata", "fakes.yaml"))
	if err != nil {
		return err
	}
	text := strings.NewReplacer("NAMESPACE", hosted, "FAKE", s.payload.fakes).Replace(string(rule))
	return s.apply(ctx, []byte(text), []string{"kubectl", "apply", "-f", "-"})
}

// createCluster creates the cluster as a user would. Its operator catalogs run in the hosted cluster, since their
// images are in no registry here.
func (s *suite) createCluster(ctx context.Context) error {
	file := s.Path("openshift.yaml")
	if err := s.CreateCluster(ctx, cluster, 1, "--release-image", s.releases[0], "--image", image,
		"--external-api-server-address", env.Gateway, "--node-upgrade-type", "Replace",
		"--render-into", file, "--render-sensitive"); err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	documents := strings.Split(string(text), "\n---\n")
	for i, document := range documents {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			return err
		}
		spec, ok := object["spec"].(map[string]any)
		if !ok || object["kind"] != "HostedCluster" {
			continue
		}
		spec["olmCatalogPlacement"] = "guest"
		changed, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		documents[i] = string(changed)
	}
	return s.apply(ctx, []byte(strings.Join(documents, "\n---\n")), []string{"kubectl", "apply", "-f", "-"})
}

// saveKubeconfig writes the administrator's kubeconfig of the hosted cluster.
func (s *suite) saveKubeconfig(ctx context.Context) error {
	kubeconfig, err := s.Read(ctx, "hypershift", "create", "kubeconfig", "--name", cluster,
		"--namespace", journey.Namespace)
	if err != nil {
		return err
	}
	return os.WriteFile(s.Path(cluster+".kubeconfig"), []byte(kubeconfig), 0o600)
}

// pods lists the pods of the control plane that are not ready.
func (s *suite) pods(ctx context.Context) string {
	pods := &corev1.PodList{}
	if err := s.c.List(ctx, pods, client.InNamespace(hosted)); err != nil {
		return err.Error()
	}
	var waiting []string
	for _, pod := range pods.Items {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue && pod.Status.Phase != corev1.PodSucceeded {
				waiting = append(waiting, pod.Name)
			}
		}
	}
	return fmt.Sprintf("%d pods, not ready: %s", len(pods.Items), strings.Join(waiting, ", "))
}

// components waits until all components of the control plane run the first version, and the cluster reports that.
func (s *suite) components(t *testing.T) { s.versionReached(t, 0) }

// versionReached waits until the control plane and the history of the cluster have reached a version.
func (s *suite) versionReached(t *testing.T, i int) {
	t.Helper()
	s.reach(t, "components of the control plane at "+s.versions[i], long, s.rolledOut(s.versions[i]))
	s.reach(t, "ClusterVersion created", soon, func(ctx context.Context) (bool, string, error) {
		_, err := s.Read(ctx, s.Guest(cluster, "get", "clusterversion", "version")...)
		return err == nil, "", err
	})
	s.must(t, s.versionApplied(t.Context(), s.versions[i], s.releases[i]))
	s.reach(t, "history of the HostedCluster", soon, func(ctx context.Context) (bool, string, error) {
		hc := &hyperv1.HostedCluster{}
		if err := s.c.Get(ctx, client.ObjectKey{Namespace: journey.Namespace, Name: cluster}, hc); err != nil {
			return false, "", err
		}
		if hc.Status.Version == nil || len(hc.Status.Version.History) == 0 {
			return false, "no history", nil
		}
		newest := hc.Status.Version.History[0]
		done := newest.Version == s.versions[i] && newest.State == "Completed"
		return done, newest.Version + " " + string(newest.State), nil
	})
}

// rolledOut checks that all components of the control plane have completed the rollout of the given version.
func (s *suite) rolledOut(version string) journey.Check {
	return func(ctx context.Context) (bool, string, error) {
		components := &hyperv1.ControlPlaneComponentList{}
		if err := s.c.List(ctx, components, client.InNamespace(hosted)); err != nil {
			return false, "", err
		}
		var waiting []string
		for _, c := range components.Items {
			available := meta.IsStatusConditionTrue(c.Status.Conditions, string(hyperv1.ControlPlaneComponentAvailable))
			complete := meta.IsStatusConditionTrue(c.Status.Conditions, string(hyperv1.ControlPlaneComponentRolloutComplete))
			if !available || !complete || c.Status.Version != version {
				waiting = append(waiting, c.Name)
			}
		}
		words := fmt.Sprintf("%d components, waiting for %s", len(components.Items), strings.Join(waiting, ", "))
		// A control plane of OpenShift has more than 25 components.
		return len(waiting) == 0 && len(components.Items) > 25, words, nil
	}
}

// join waits for the node of the first pool. Its machine has fetched its configuration from the release's
// ignition-server with the user-data of MAAS.
func (s *suite) join(t *testing.T) {
	s.must(t, s.FollowMachines(t.Context(), s.c, cluster, cluster, 1))
	s.configured(t, cluster)
	s.reach(t, journey.StageNodes, long, s.PoolNodesReady(cluster, cluster, 1))
	s.must(t, s.FollowPool(t.Context(), cluster, 1))
	node := &corev1.NodeList{}
	guest, err := s.GuestClient(cluster)
	s.must(t, err)
	s.must(t, guest.List(t.Context(), node))
	NewWithT(t).Expect(node.Items).To(HaveExactElements(HaveField("Spec.ProviderID", HavePrefix("maas://"))))
}

// configured checks that the only machine of a pool has the configuration that the release's ignition-server served.
func (s *suite) configured(t *testing.T, pool string) infrav1.MaasMachine {
	t.Helper()
	machines, err := journey.Machines(t.Context(), s.c, cluster, pool)
	s.must(t, err)
	NewWithT(t).Expect(machines).To(HaveLen(1))
	file := s.Path("machines", *machines[0].Spec.SystemID, "root", servedFile)
	s.reach(t, "configuration served by the release's ignition-server", soon, journey.Quick(func() (bool, string, error) {
		content, err := os.ReadFile(file)
		return string(content) == "release", "", err
	}))
	const reached = hyperv1.NodePoolReachedIgnitionEndpoint
	s.reach(t, reached, soon, journey.PoolCondition(s.c, pool, reached, "True"))
	return machines[0]
}

// replaceConfig adds a MachineConfig to the first pool, and checks that the pool's machine is replaced.
func (s *suite) replaceConfig(t *testing.T) {
	before := s.configured(t, cluster)
	s.patch(t, "nodepool", cluster, `{"spec":{"config":[{"name":%q}]}}`, s.machineConfig(t, "replaced"))
	s.reach(t, "machine replaced", long, func(ctx context.Context) (bool, string, error) {
		machines, err := journey.Machines(ctx, s.c, cluster, cluster)
		if err != nil || len(machines) != 1 {
			return false, fmt.Sprintf("%d machines", len(machines)), err
		}
		return machines[0].UID != before.UID, machines[0].Name, nil
	})
	s.configured(t, cluster)
	s.reach(t, journey.StageNodes, long, s.PoolNodesReady(cluster, cluster, 1))
}

// updateInPlace creates a second pool, changes its configuration, and checks that its machine is not replaced.
func (s *suite) updateInPlace(t *testing.T) {
	s.must(t, s.Type(t.Context(), "hypershift", "create", "nodepool", "maas", "--name", inPlace,
		"--cluster-name", cluster, "--replicas", "1", "--erase", "None", "--image", image,
		"--node-upgrade-type", "InPlace", "--release-image", s.releases[0]))
	s.must(t, s.FollowMachines(t.Context(), s.c, cluster, inPlace, 1))
	before := s.configured(t, inPlace)
	s.must(t, s.FollowPool(t.Context(), inPlace, 1))
	version := s.configVersion(t)
	s.patch(t, "nodepool", inPlace, `{"spec":{"config":[{"name":%q}]}}`, s.machineConfig(t, "in-place"))
	s.inPlaceDone(t, version)
	NewWithT(t).Expect(s.configured(t, inPlace).UID).To(Equal(before.UID), "an update in place keeps the machine")
}

// configVersion returns the version of the configuration that the in-place pool has reached.
func (s *suite) configVersion(t *testing.T) string {
	t.Helper()
	pool := &hyperv1.NodePool{}
	s.must(t, s.c.Get(t.Context(), client.ObjectKey{Namespace: journey.Namespace, Name: inPlace}, pool))
	return pool.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation]
}

// inPlaceDone waits until the in-place pool has completed an update to a new configuration.
func (s *suite) inPlaceDone(t *testing.T, before string) {
	t.Helper()
	s.reach(t, "update in place complete", long, func(ctx context.Context) (bool, string, error) {
		pool := &hyperv1.NodePool{}
		if err := s.c.Get(ctx, client.ObjectKey{Namespace: journey.Namespace, Name: inPlace}, pool); err != nil {
			return false, "", err
		}
		var updating []string
		for _, c := range pool.Status.Conditions {
			config, version := hyperv1.NodePoolUpdatingConfigConditionType, hyperv1.NodePoolUpdatingVersionConditionType
			if (c.Type == config || c.Type == version) && c.Status != corev1.ConditionFalse {
				updating = append(updating, c.Type+": "+c.Message)
			}
		}
		now := pool.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation]
		return now != before && len(updating) == 0, now + " " + strings.Join(updating, "; "), nil
	})
}

func (s *suite) upgrade(t *testing.T) {
	s.must(t, s.featureGates(t.Context(), s.versions[1]))
	s.patch(t, "hostedcluster", cluster, `{"spec":{"release":{"image":%q}}}`, s.releases[1])
	s.versionReached(t, 1)
	s.reach(t, journey.StageAvailable, soon, journey.ClusterAvailable(s.c, cluster))
}

// upgradeNodes upgrades both pools: one by replacement, and one in place.
func (s *suite) upgradeNodes(t *testing.T) {
	version := s.configVersion(t)
	for _, pool := range []string{cluster, inPlace} {
		s.patch(t, "nodepool", pool, `{"spec":{"release":{"image":%q}}}`, s.releases[1])
	}
	s.inPlaceDone(t, version)
	for _, pool := range []string{cluster, inPlace} {
		s.reach(t, "pool "+pool+" at "+s.versions[1], long, journey.PoolVersion(s.c, pool, s.versions[1]))
	}
}

// rights checks that the management cluster has not denied any request of the release's operators.
func (s *suite) rights(t *testing.T) {
	for _, account := range []string{
		"control-plane-operator", "hosted-cluster-config-operator", "control-plane-pki-operator", "ignition-server",
	} {
		asked, err := s.Asked(hosted + ":" + account)
		s.must(t, err)
		s.Say("%s: %d kinds requested", account, len(asked.Granted))
		NewWithT(t).Expect(asked.Denied).To(BeEmpty(), account)
	}
}

func (s *suite) destroy(t *testing.T) {
	s.must(t, s.DestroyCluster(t.Context(), cluster))
	s.reach(t, "machines released", soon, journey.MAASReady(s.maas))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hosted}}
	s.reach(t, "namespace of the control plane gone", soon, journey.Gone(s.c, namespace))
}
