// SPDX-License-Identifier: Apache-2.0

package founding

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/platform/maas"
	maasapi "github.com/openshift/hypershift/support/maas"
)

// TestFounding does what the documents do, in their order: install, create clusters and pools, apply manifests.
func TestFounding(t *testing.T) {
	w := newWorld(t)
	w.readyNode("10.10.155.170")
	w.storage()
	install(w)
	w.serves()
	partialCluster(w)
	cluster(w)
	shortCluster(w)
	pools(w)
	machines(w)
}

// install runs the documented line, which records no default release, and then records one.
func install(w *world) {
	w.succeeds("install", "--wait-until-crds-established")
	o := w.types("create-cluster")
	w.Expect(o.code).To(Equal(2))
	w.Expect(o.stderr).To(And(ContainSubstring("--release-image is required: no default release is recorded in ConfigMap hypershift/supported-versions"),
		ContainSubstring("hypershift install --default-release-image")))
	w.succeeds("install", "--default-release-image", defaultRelease)
}

// partialCluster applies a HostedCluster with one service and without a release. It gets the default release, and one
// sentence about the rest.
func partialCluster(w *world) {
	w.Eventually(func(g Gomega) {
		warnings, err := w.applies("hostedcluster-partial", "")
		g.Expect(err).To(MatchError(And(ContainSubstring("spec.pullSecret: Required value"), Not(ContainSubstring("spec.release")))))
		g.Expect(warnings).To(ContainElements(
			"spec.release.image is "+defaultRelease+", the default release of this installation",
			ContainSubstring("the HostedCluster is incomplete, add spec.pullSecret, the name of a Secret that may hold {\"auths\":{}}, "+
				"service OAuthServer in spec.services, service Konnectivity in spec.services, service Ignition in spec.services: ")))
	}, patience).Should(Succeed(), "the API server learns of the webhook a moment later")
}

func cluster(w *world) {
	said := w.succeeds("create-cluster")
	w.Expect(said).To(And(ContainSubstring("release "+defaultRelease+": the default that install recorded"), Not(ContainSubstring("no --pull-secret"))))
	hc := &hyperv1.HostedCluster{}
	w.gets(hc, "clusters", "test")
	w.Expect(hc.Spec.Release.Image).To(Equal(defaultRelease))
	w.Expect(hc.Spec.DNS.BaseDomain).To(Equal("hypershift.example.dev"))
	w.Expect(hc.Spec.Services).To(HaveEach(HaveField("ServicePublishingStrategy.NodePort.Address", "10.10.155.171")))
	secret := &corev1.Secret{}
	w.gets(secret, "clusters", hc.Spec.PullSecret.Name)
	w.Expect(string(secret.Data[corev1.DockerConfigJsonKey])).To(ContainSubstring("quay.io"))
	w.gets(secret, "clusters", hc.Spec.SSHKey.Name)
	w.gets(secret, "clusters", hc.Spec.Platform.MAAS.IdentityRef.Name)
	w.Expect(string(secret.Data["MAAS_ENDPOINT"])).To(Equal("https://maas.example.com"))
	w.Expect(string(secret.Data["MAAS_API_KEY"])).To(Equal(apiKey))
}

// shortCluster runs the line without a pull secret, a base domain and an address.
func shortCluster(w *world) {
	for _, namespace := range []string{"clusters", "one"} {
		said := w.succeeds("create-cluster-short", "--namespace", namespace)
		w.Expect(said).To(And(ContainSubstring("release "+defaultRelease+": the default that install recorded"),
			ContainSubstring("no --pull-secret: Secret "+namespace+"/maas-cluster-pull-secret is made without credentials")))
	}
	hc, pool, secret := &hyperv1.HostedCluster{}, &hyperv1.NodePool{}, &corev1.Secret{}
	w.gets(hc, "clusters", "maas-cluster")
	w.gets(pool, "clusters", "maas-cluster")
	w.gets(secret, "clusters", hc.Spec.PullSecret.Name)
	w.Expect(string(secret.Data[corev1.DockerConfigJsonKey])).To(Equal(`{"auths":{}}`))
	w.Expect(hc.Spec.Platform.MAAS.Zone).To(BeEquivalentTo("zone1"))
	w.Expect(pool.Spec.Platform.MAAS.Zone).To(BeEquivalentTo("zone1"))
	w.Expect(hc.Spec.Services).To(HaveEach(HaveField("ServicePublishingStrategy.NodePort.Address", "10.10.155.170")))
}

func pools(w *world) {
	pool := &hyperv1.NodePool{}
	w.succeeds("create-nodepool")
	w.gets(pool, "clusters", "maas-workers")
	w.Expect(pool.Spec.Replicas).To(HaveValue(BeEquivalentTo(3)))
	w.Expect(pool.Spec.Platform.MAAS.MachineType).To(Equal("compute"))

	warnings, err := w.applies("nodepool-zone-and-failure-domain", "one")
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(warnings).To(ConsistOf("spec.clusterName is maas-cluster, the only HostedCluster of namespace one"))
	hc := &hyperv1.HostedCluster{}
	w.gets(hc, "one", "maas-cluster")
	w.gets(pool, "one", "maas-workers")
	w.Expect(pool.Spec.ClusterName).To(Equal("maas-cluster"))
	w.Expect(pool.Spec.Release.Image).To(Equal(defaultRelease))
	plugin := maas.New(maas.Options{WhoAmI: func(context.Context, maasapi.Config) (string, error) { return "ci", nil }})
	w.Expect(plugin.Overridden(pool)).To(ConsistOf(ContainSubstring("zone zone1 counts, and spec.platform.maas.failureDomain rack1 has no effect")))
	template := plugin.MachineTemplate(platform.Pool{NodePool: pool, HostedCluster: hc}).(*infrav1.MaasMachineTemplate)
	w.Expect(template.Spec.Template.Spec).To(And(HaveField("FailureDomain", HaveValue(Equal("zone1"))), HaveField("Image", "ubuntu/focal"),
		HaveField("Tags", ConsistOf("worker", "compute")), HaveField("MinCPU", HaveValue(Equal(2))), HaveField("MinMemory", HaveValue(Equal(4096)))))

	secondIdentity(w, plugin)
}

// secondIdentity applies a pool that names another Secret than the cluster's. The documents create it in the operator's
// namespace, where it is not read.
func secondIdentity(w *world, plugin *maas.Platform) {
	_, err := w.applies("secret", "")
	w.Expect(err).NotTo(HaveOccurred())
	_, err = w.applies("nodepool-identity", "")
	w.Expect(err).NotTo(HaveOccurred())
	hc, pool := &hyperv1.HostedCluster{}, &hyperv1.NodePool{}
	w.gets(hc, "clusters", "test")
	w.gets(pool, "clusters", "test")
	check := func() string {
		w.t.Helper()
		why, _, err := plugin.CheckIdentity(w.t.Context(), w.client, platform.Pool{NodePool: pool, HostedCluster: hc})
		w.Expect(err).NotTo(HaveOccurred())
		return why
	}
	w.Expect(check()).To(ContainSubstring("names Secret maas-credentials, which does not exist in namespace clusters"))
	theirs := &corev1.Secret{}
	w.gets(theirs, "hypershift", "maas-credentials")
	copied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "maas-credentials"}, Data: theirs.Data}
	w.Expect(w.client.Create(w.t.Context(), copied)).To(Succeed())
	w.Expect(check()).To(BeEmpty(), "it is the same MAAS and user")
}

// machines applies objects of the provider in the spelling of the documents.
func machines(w *world) {
	for _, name := range []string{"maascluster", "maasmachinetemplate", "maasmachinetemplate-lxd"} {
		_, err := w.applies(name, "default")
		w.Expect(err).NotTo(HaveOccurred(), name)
	}
	template := &infrav1.MaasMachineTemplate{}
	w.gets(template, "default", "maas-workers-template-abc123")
	spec := &template.Spec.Template.Spec
	w.Expect([]int{spec.CPUs(), spec.MemoryMiB()}).To(Equal([]int{2, 4096}))
	w.Expect(spec.ResourcePool).To(HaveValue(Equal("default")))
	w.gets(template, "default", "lxd")
	w.Expect(spec.LXDConfig.Storage.Size.String()).To(Equal("20Gi"))
	for text, want := range map[string]maasapi.ProviderID{
		"maas://az-a/wq4h8c": {Zone: "az-a", SystemID: "wq4h8c"}, "maas-lxd://az-a/wq4h8c": {Zone: "az-a", SystemID: "wq4h8c", LXD: true},
	} {
		got, ok := maasapi.ParseProviderID(text)
		w.Expect(ok).To(BeTrue(), text)
		w.Expect(got).To(Equal(want))
	}
}
