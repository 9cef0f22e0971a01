// SPDX-License-Identifier: Apache-2.0

package root_test

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// TestInstallDryRun previews a first installation, a second one without changes, and one with a new image.
func TestInstallDryRun(t *testing.T) {
	u := newUser(t)
	first := []string{"install", "--hypershift-image", "registry.example/hypershift:1"}
	preview := func(args ...string) string {
		t.Helper()
		return u.succeeds("", append(args, "--dry-run")...).stdout
	}

	shown := preview(first...)
	u.Expect(shown).To(ContainSubstring("create  CustomResourceDefinition hostedclusters.hypershift.openshift.io\n"))
	u.Expect(shown).To(ContainSubstring("create  Deployment hypershift/operator\n"))
	u.Expect(shown).To(MatchRegexp(`\d+ objects to create, 0 to change, 0 unchanged. Nothing was changed.\n$`))
	u.Expect(u.gets(&corev1.Namespace{}, "", "hypershift")).To(MatchError(ContainSubstring("not found")))

	u.succeeds("", append(first, "--wait-until-crds-established")...)
	u.Expect(preview(first...)).To(MatchRegexp(`^\n0 objects to create, 0 to change, \d+ unchanged. Nothing was changed.\n$`))

	cluster := &hyperv1.HostedCluster{}
	u.Expect(yaml.Unmarshal([]byte(`
metadata: {name: demo, namespace: default}
spec:
  platform: {type: None}
  release: {image: registry.example/release:1}
  pullSecret: {name: pull}
  sshKey: {name: ssh}
  networking: {clusterNetwork: [{cidr: 10.132.0.0/14}]}
  services:
  - {service: APIServer, servicePublishingStrategy: {type: LoadBalancer}}
  - {service: OAuthServer, servicePublishingStrategy: {type: Route}}
  - {service: Konnectivity, servicePublishingStrategy: {type: Route}}
  - {service: Ignition, servicePublishingStrategy: {type: Route}}
  etcd: {managementType: Managed, managed: {storage: {type: PersistentVolume}}}
`), cluster)).To(Succeed())
	u.Expect(u.client.Create(t.Context(), cluster)).To(Succeed())
	before := &appsv1.Deployment{}
	u.Expect(u.gets(before, "hypershift", "operator")).To(Succeed())
	shown = preview("install", "--hypershift-image", "registry.example/hypershift:2")
	u.Expect(shown).To(ContainSubstring("change  Deployment hypershift/operator: spec.template.spec."))
	u.Expect(shown).To(ContainSubstring("changes\n  from registry.example/hypershift:1\n  to   registry.example/hypershift:2\n"))
	u.Expect(shown).To(ContainSubstring("unless an OpenShift payload brings their operators:\n  default/demo\n"))
	cluster.Spec.PausedUntil = ptr.To("true")
	u.Expect(u.client.Update(t.Context(), cluster)).To(Succeed())
	shown = preview("install", "--hypershift-image", "registry.example/hypershift:2")
	u.Expect(shown).To(ContainSubstring("\n  default/demo (when spec.pausedUntil is over)\n"))
	after := &appsv1.Deployment{}
	u.Expect(u.gets(after, "hypershift", "operator")).To(Succeed())
	u.Expect(after.ResourceVersion).To(Equal(before.ResourceVersion))

	u.Expect(u.client.Delete(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "hypershift", Name: "operator"}})).To(Succeed())
	u.Expect(preview(first...)).To(HavePrefix("create  Deployment hypershift/operator\n"))
}
