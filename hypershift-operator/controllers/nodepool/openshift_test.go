// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"compress/gzip"
	"encoding/base64"
	"io"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	ignition "github.com/coreos/ignition/v2/config/v3_2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/naming"
)

const guestKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://api.example:31443"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
users: [{name: u, user: {}}]
`

// openShift creates a cluster and a pool with an OpenShift release.
func (s *world) openShift(upgrade hyperv1.UpgradeType) {
	s.t.Helper()
	s.ready(func(hc *hyperv1.HostedCluster) { hc.Spec.Release.Image = fixture.OCPImage })
	pool := fixture.NodePool(s.namespace)
	pool.Spec.Release.Image = fixture.OCPImage
	pool.Spec.Platform.MAAS.Image = "custom/rhcos"
	pool.Spec.Management.UpgradeType = upgrade
	fixture.Create(s.t, s.client, pool, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "demo-admin-kubeconfig"},
		Data:       map[string][]byte{"kubeconfig": []byte(guestKubeconfig)}})
}

// coreConfigs creates the ConfigMaps of an OpenShift control-plane-operator.
func (s *world) coreConfigs() {
	s.t.Helper()
	for _, name := range []string{"ignition-config-fips", "ignition-config-worker-ssh"} {
		fixture.Create(s.t, s.client, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: name, Labels: map[string]string{coreConfigLabel: "true"}},
			Data:       map[string]string{"config": "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: " + name + "}\n"},
		})
	}
}

func (s *world) config(token *corev1.Secret) string {
	s.t.Helper()
	reader, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(string(token.Data["config"]))))
	s.Expect(err).NotTo(HaveOccurred())
	text, err := io.ReadAll(reader)
	s.Expect(err).NotTo(HaveOccurred())
	return string(text)
}

func TestOpenShift(t *testing.T) {
	c := fixture.Start(t)

	t.Run("When the control plane has not created its core ignition configs, it should wait and create no machines", func(t *testing.T) {
		s := newWorld(t, c, "ocp")
		s.openShift(hyperv1.UpgradeTypeReplace)
		s.mustPass()
		s.Expect(s.condition("ValidMachineConfig").Message).To(Equal("Waiting for the control plane: expected 2 core ignition configs, found 0"))
		s.Expect(s.templates()).To(BeEmpty())
	})

	t.Run("When all configs exist, it should merge them with the API proxy and wipe the helper partition", func(t *testing.T) {
		s := newWorld(t, c, "ocp")
		s.coreConfigs()
		s.mustPass()
		userData := *s.deployment().Spec.Template.Spec.Bootstrap.DataSecretName
		token := s.tokenOf(userData)
		documents := strings.Split(s.config(token), documentSeparator)
		s.Expect(documents).To(HaveLen(3))
		s.Expect(documents).To(ContainElement(And(ContainSubstring("20-apiserver-haproxy"), ContainSubstring("apiserver-ip.service"))))
		s.Expect(documents).To(HaveEach(ContainSubstring("machineconfiguration.openshift.io/role: worker")))
		s.Expect(string(token.Data["pull-secret-hash"])).To(Equal(naming.HashValue([]byte(`{"auths":{}}`))))
		config, _, err := ignition.Parse(s.secret(userData).Data["value"])
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(config.Systemd.Units).To(HaveLen(1))
	})

	t.Run("When the pull secret's content changes, it should update the token Secret and replace no machines", func(t *testing.T) {
		s := newWorld(t, c, "ocp")
		before := s.deployment()
		secret := &corev1.Secret{}
		s.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: fixture.PullSecret}, secret)).To(Succeed())
		secret.Data[corev1.DockerConfigJsonKey] = []byte(`{"auths":{"a":{}}}`)
		s.Expect(c.Update(t.Context(), secret)).To(Succeed())
		old := s.tokenOf(*before.Spec.Template.Spec.Bootstrap.DataSecretName)
		s.mustPass()
		s.Expect(s.deployment().Spec.Template).To(Equal(before.Spec.Template))
		token := s.tokenOf(*before.Spec.Template.Spec.Bootstrap.DataSecretName)
		s.Expect(token.Data["pull-secret-hash"]).NotTo(Equal(old.Data["pull-secret-hash"]))
		s.Expect(token.Data["token"]).To(Equal(old.Data["token"]))
	})

	t.Run("When the ignition-server rotates the token, it should update the user-data", func(t *testing.T) {
		s := newWorld(t, c, "ocp")
		userData := *s.deployment().Spec.Template.Spec.Bootstrap.DataSecretName
		token := s.tokenOf(userData)
		token.Data["old_token"], token.Data["token"] = token.Data["token"], []byte("rotated")
		s.Expect(c.Update(t.Context(), token)).To(Succeed())
		s.mustPass()
		s.Expect(string(s.secret(userData).Data["value"])).To(ContainSubstring(base64.StdEncoding.EncodeToString([]byte("rotated"))))
		s.Expect(s.tokenOf(userData).Data).To(HaveKey("old_token"))
	})

	t.Run("When the ignition-server rejects the configuration, it should report why", func(t *testing.T) {
		s := newWorld(t, c, "ocp")
		token := s.tokenOf(*s.deployment().Spec.Template.Spec.Bootstrap.DataSecretName)
		token.Data["reason"], token.Data["message"] = []byte("InvalidConfig"), []byte("unit x is malformed")
		s.Expect(c.Update(t.Context(), token)).To(Succeed())
		s.mustPass()
		s.Expect(s.condition("ValidGeneratedPayload").Message).To(Equal("unit x is malformed"))
		s.Expect(s.condition("ValidGeneratedPayload").Reason).To(Equal("InvalidConfig"))
	})

	t.Run("When a machine has fetched its configuration, it should create the MachineHealthCheck", func(t *testing.T) {
		s := newWorld(t, c, "ocp")
		token := s.tokenOf(*s.deployment().Spec.Template.Spec.Bootstrap.DataSecretName)
		token.Annotations[hyperv1.TokenSecretIgnitionReachedAnnotation] = "True"
		s.Expect(c.Update(t.Context(), token)).To(Succeed())
		s.mustPass()
		s.Expect(s.condition("ReachedIgnitionEndpoint").Status).To(Equal(corev1.ConditionTrue))
		mhc := &clusterv1.MachineHealthCheck{}
		s.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: s.hosted(), Name: fixture.PoolName}, mhc)).To(Succeed())
		s.Expect(mhc.Spec.Checks.NodeStartupTimeoutSeconds).To(HaveValue(BeEquivalentTo((10 + 3*60 + 20 + 15) * 60)))
		s.Expect(mhc.Spec.Selector.MatchLabels).To(HaveKey(hyperv1.RepairAdmittedLabel))

		s.change(func(p *hyperv1.NodePool) {
			p.Annotations = map[string]string{hyperv1.MachineHealthCheckNodeStartupTimeoutAnnotation: "90m"}
		})
		s.mustPass()
		s.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(mhc), mhc)).To(Succeed())
		s.Expect(mhc.Spec.Checks.NodeStartupTimeoutSeconds).To(HaveValue(BeEquivalentTo(5400)))

		s.change(func(p *hyperv1.NodePool) { p.Spec.Management.AutoRepair = false })
		s.mustPass()
		s.Expect(client.IgnoreNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(mhc), mhc))).To(Succeed())
		s.Expect(s.condition("AutorepairEnabled").Status).To(Equal(corev1.ConditionFalse))
	})
}
