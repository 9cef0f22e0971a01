// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope/scopetest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/nodeinput"
	"github.com/openshift/hypershift/support/testenv"
)

// tokenPass returns an in-memory world and a scope with its configuration.
func tokenPass(t *testing.T) (*world, *Secrets) {
	t.Helper()
	w, s := inMemory(t), pass()
	s.Client = w.server
	s.Config.Raw, s.Config.Format, s.Config.TrustBundle = "documents", hyperv1.UserDataIgnition, "PEM"
	s.PullSecret, s.IgnitionCA = []byte(`{"auths":{}}`), []byte("CA")
	s.HC.Status.IgnitionEndpoint = "ignition.example:443"
	return w, s
}

// TestReconcileToken checks the two Secrets and the rights of their readers.
func TestReconcileToken(t *testing.T) {
	t.Run("When a pool has a configuration, it should create the token and user-data Secrets and their Roles", func(t *testing.T) {
		w, s := tokenPass(t)
		name, result, err := s.Reconcile(t.Context())
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(result).To(BeZero())
		w.Expect(name).To(Equal("user-data-demo-wanted"))
		token, userData := w.secret("token-demo-wanted"), w.secret(name)
		w.Expect(string(token.Data["release"])).To(Equal(fixture.ReleaseImage))
		w.Expect(userData.Annotations).To(Equal(map[string]string{hyperv1.NodePoolAnnotation: "clusters/demo"}))
		w.Expect(userData.Type).To(Equal(corev1.SecretTypeOpaque))
		w.Expect(s.Conditions[hyperv1.NodePoolValidGeneratedPayloadConditionType].Reason).To(Equal(waitingForIgnitionServer))
		w.Expect(s.Conditions[hyperv1.NodePoolReachedIgnitionEndpoint].Status).To(Equal(metav1.ConditionFalse))
		for name, who := range map[string]struct {
			account string
			verbs   []string
		}{
			token.Name:    {"ignition-server", []string{"get", "update", "patch", "delete"}},
			userData.Name: {"capi-provider", []string{"get"}},
		} {
			role, binding := scopetest.Read(w.t, w.server, &rbacv1.Role{}, name), scopetest.Read(w.t, w.server, &rbacv1.RoleBinding{}, name)
			w.Expect(role.Rules).To(Equal([]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{name}, Verbs: who.verbs}}))
			w.Expect(binding.Subjects).To(Equal([]rbacv1.Subject{{Kind: "ServiceAccount", Namespace: fixture.Hosted("clusters"), Name: who.account}}))
		}
	})
	for _, refused := range []string{
		"create v1.Secret .*/token-demo-wanted", "create v1.Role .*/token-demo-wanted",
		"create v1.Secret .*/user-data-demo-wanted", "create v1.RoleBinding .*/user-data-demo-wanted",
	} {
		t.Run("When the server refuses to "+refused+", it should return the error and no name of user-data", func(t *testing.T) {
			w, s := tokenPass(t)
			s.Client = scopetest.Answering(w.server, refused, testenv.ErrRefused)
			name, _, err := s.Reconcile(t.Context())
			w.Expect(err).To(MatchError(testenv.ErrRefused))
			w.Expect(name).To(BeEmpty())
		})
	}
	t.Run("When the user-data is too large for machines, it should return an error", func(t *testing.T) {
		w, s := tokenPass(t)
		s.Config.Format, s.IgnitionCA = hyperv1.UserDataCloudConfig, bytes.Repeat([]byte("C"), 16<<10)
		_, _, err := s.Reconcile(t.Context())
		w.Expect(err).To(MatchError(ContainSubstring("16 KiB")))
		w.Expect(scopetest.Find(t, w.server, &corev1.Secret{}, "user-data-demo-wanted")).To(BeNil())
	})
}

// TestShapeToken checks that data that the ignition-server wrote stays, and that only keys that do not replace
// machines are updated.
func TestShapeToken(t *testing.T) {
	data := map[string][]byte{"release": []byte("new"), "config": []byte("new"), "pull-secret-hash": []byte("new"),
		"additional-trust-bundle-hash": []byte("new"), "hc-configuration-hash": []byte("new")}
	annotations := func(more ...string) map[string]string {
		all := map[string]string{hyperv1.NodePoolAnnotation: "clusters/demo", "hypershift.openshift.io/ignition-config": "true",
			"hypershift.openshift.io/node-pool-upgrade-type": "Replace"}
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	const madeAt, reached = "hypershift.openshift.io/last-token-generation-time", "hypershift.openshift.io/ignition-reached"
	now := pass().Now.Format(time.RFC3339Nano)
	fresh := map[string]string{"release": "new", "config": "new", "pull-secret-hash": "new", "additional-trust-bundle-hash": "new", "hc-configuration-hash": "new"}
	for name, tc := range map[string]struct {
		token       corev1.Secret
		scope       func(*Secrets)
		data        map[string]string
		annotations map[string]string
		kind        corev1.SecretType
	}{
		"When the Secret is new, it should set all data": {data: fresh, annotations: annotations(madeAt, now), kind: "Opaque"},
		"When the Secret exists, it should keep its token and the data that identifies the configuration": {
			token: corev1.Secret{Type: "own", Data: map[string][]byte{"token": []byte("t"), "release": []byte("old"), "pull-secret-hash": []byte("old"),
				"additional-trust-bundle-hash": []byte("old"), "hc-configuration-hash": []byte("old"), "reason": []byte("AsExpected")}},
			data: map[string]string{"token": "t", "release": "old", "config": "new", "pull-secret-hash": "new",
				"additional-trust-bundle-hash": "new", "hc-configuration-hash": "new", "reason": "AsExpected"},
			annotations: annotations(), kind: "own"},
		"When the token is empty, it should create another token and keep the Secret's type": {
			token: corev1.Secret{Type: "own", Data: map[string][]byte{"token": {}}}, data: fresh, annotations: annotations(madeAt, now), kind: "own"},
		"When the pool uses the configuration again, it should remove the expiration": {
			token: corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"hypershift.openshift.io/ignition-token-expiration-timestamp": "soon", "their": "own"}}},
			data:  fresh, annotations: annotations(madeAt, now, "their", "own"), kind: "Opaque"},
		"When the cluster was restored from a backup, it should mark its machines as having reached ignition": {
			scope: func(s *Secrets) { scope.Annotate(s.HC, hyperv1.HostedClusterRestoredFromBackupAnnotation, "") },
			data:  fresh, annotations: annotations(madeAt, now, reached, "True"), kind: "Opaque"},
		"When machines use cloud-config, it should set the user-data format": {scope: func(s *Secrets) { s.Config.Format = hyperv1.UserDataCloudConfig },
			data: fresh, annotations: annotations(madeAt, now, "hypershift.openshift.io/user-data-format", "CloudConfig"), kind: "Opaque"},
		"When the architecture is not amd64, it should set the architecture": {scope: func(s *Secrets) { s.Pool.Spec.Arch = "arm64" },
			data: fresh, annotations: annotations(madeAt, now, "hypershift.openshift.io/node-architecture", "arm64"), kind: "Opaque"},
		"When the architecture is amd64, it should not set the architecture": {scope: func(s *Secrets) { s.Pool.Spec.Arch = "amd64" },
			data: fresh, annotations: annotations(madeAt, now), kind: "Opaque"},
	} {
		t.Run(name, func(t *testing.T) {
			g, s, token := NewWithT(t), pass(), tc.token.DeepCopy()
			s.Config.Format, s.Now = hyperv1.UserDataIgnition, s.Now.In(time.FixedZone("elsewhere", 3600))
			if tc.scope != nil {
				tc.scope(s)
			}
			s.shapeToken(token, data)
			got := map[string]string{}
			for key, value := range token.Data {
				got[key] = string(value)
			}
			if tc.data["token"] == "" {
				g.Expect(got["token"]).To(HaveLen(36))
				delete(got, "token")
			}
			g.Expect(cmp.Diff(tc.data, got)).To(BeEmpty(), "-want +got")
			g.Expect(cmp.Diff(tc.annotations, token.Annotations)).To(BeEmpty(), "-want +got")
			g.Expect(token.Type).To(Equal(tc.kind))
		})
	}
}

// TestReportReached checks when a pool reports that a machine has fetched the configuration. Machines that are updated
// in place fetch only their first configuration; their nodes get later ones.
func TestReportReached(t *testing.T) {
	for name, tc := range map[string]struct {
		annotation string
		upgrade    hyperv1.UpgradeType
		before     []hyperv1.NodePoolCondition
		want       metav1.Condition
	}{
		"When no machine has fetched the configuration, it should report false": {"", "Replace", nil, metav1.Condition{Status: "False", Reason: "ignitionNotReached"}},
		"When a machine has fetched the configuration, it should report true":   {"True", "Replace", nil, metav1.Condition{Status: "True", Reason: "AsExpected"}},
		"When the annotation is not True, it should report false":               {"False", "Replace", nil, metav1.Condition{Status: "False", Reason: "ignitionNotReached"}},
		"When a machine fetched only the previous configuration and machines are replaced, it should report false": {"", "Replace",
			[]hyperv1.NodePoolCondition{{Type: "ReachedIgnitionEndpoint", Status: "True"}}, metav1.Condition{Status: "False", Reason: "ignitionNotReached"}},
		"When a machine fetched only the previous configuration in an InPlace pool, it should report true": {"", "InPlace",
			[]hyperv1.NodePoolCondition{{Type: "Other", Status: "False"}, {Type: "ReachedIgnitionEndpoint", Status: "True"}}, metav1.Condition{Status: "True", Reason: "AsExpected"}},
		"When no machine has ever fetched the configuration in an InPlace pool, it should report false": {"", "InPlace",
			[]hyperv1.NodePoolCondition{{Type: "Other", Status: "True"}, {Type: "ReachedIgnitionEndpoint", Status: "False"}}, metav1.Condition{Status: "False", Reason: "ignitionNotReached"}},
		"When an InPlace pool has no earlier condition, it should report false": {"", "InPlace",
			[]hyperv1.NodePoolCondition{{Type: "Other", Status: "True"}}, metav1.Condition{Status: "False", Reason: "ignitionNotReached"}},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), pass()
			s.Pool.Spec.Management.UpgradeType, s.Pool.Status.Conditions = tc.upgrade, tc.before
			token := &corev1.Secret{}
			scope.Annotate(token, "hypershift.openshift.io/ignition-reached", tc.annotation)
			s.reportReached(token)
			got := s.Conditions["ReachedIgnitionEndpoint"]
			g.Expect(got.Message).NotTo(BeEmpty())
			g.Expect([]any{got.Status, got.Reason}).To(Equal([]any{tc.want.Status, tc.want.Reason}))
		})
	}
}

// TestWriteUserData writes the user-data of a configuration, which need not be the current one.
func TestWriteUserData(t *testing.T) {
	for name, tc := range map[string]struct {
		before *corev1.Secret
		tokens string
		more   map[string]string
		kind   corev1.SecretType
	}{
		"When the user-data Secret does not exist, it should create it":                    {kind: "Opaque"},
		"When the ignition-server supports machine tokens, it should add the bearer token": {tokens: "true", more: map[string]string{"token": "bearer"}, kind: "Opaque"},
		"When the ignition-server does not support machine tokens, it should add no token": {tokens: "false", kind: "Opaque"},
		"When the user-data Secret exists, it should replace its data and keep its type": {
			before: &corev1.Secret{Type: "own", Data: map[string][]byte{"token": []byte("old"), "value": []byte("old")}}, kind: "own"},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := tokenPass(t)
			token := s.Secret(scope.TokenPrefix, "other")
			token.Data = map[string][]byte{"token": []byte("bearer")}
			scope.Annotate(token, hyperv1.MachineTokensAnnotation, tc.tokens)
			if tc.before != nil {
				tc.before.Namespace, tc.before.Name = fixture.Hosted("clusters"), "user-data-demo-other"
				fixture.Create(t, w.server, tc.before)
			}
			name, err := s.writeUserData(t.Context(), "other", token)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(name).To(Equal("user-data-demo-other"))
			want, err := s.firstBoot("other", token)
			w.Expect(err).NotTo(HaveOccurred())
			data := map[string][]byte{"value": want, "disableTemplating": []byte("dHJ1ZQ==")}
			for key, value := range tc.more {
				data[key] = []byte(value)
			}
			written := w.secret(name)
			w.Expect(cmp.Diff(data, written.Data)).To(BeEmpty(), "-want +got")
			w.Expect(written.Type).To(Equal(tc.kind))
			w.Expect(written.Annotations).To(HaveKeyWithValue("hypershift.openshift.io/nodePool", "clusters/demo"))
		})
	}
}

// TestUserDataFails checks that a failed write returns no name with which machines could be created.
func TestUserDataFails(t *testing.T) {
	for name, fail := range map[string]func(*world, *Secrets, *corev1.Secret){
		"When the user-data cannot be generated, it should return no Secret name": func(_ *world, s *Secrets, token *corev1.Secret) {
			s.IgnitionCA = bytes.Repeat([]byte("C"), 16<<10)
			scope.Annotate(token, hyperv1.TokenSecretUserDataFormatAnnotation, "CloudConfig")
		},
		"When the Secret cannot be written, it should return no Secret name": func(w *world, s *Secrets, _ *corev1.Secret) {
			s.Client = scopetest.Answering(w.server, "create v1.Secret .*", testenv.ErrRefused)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := tokenPass(t)
			token := &corev1.Secret{}
			fail(w, s, token)
			userData, err := s.writeUserData(t.Context(), "wanted", token)
			w.Expect(err).To(HaveOccurred())
			w.Expect(userData).To(BeEmpty())
		})
	}
}

// TestTokenConfig checks that the ignition-server can decompress the configuration.
func TestTokenConfig(t *testing.T) {
	g := NewWithT(t)
	_, s := tokenPass(t)
	data, err := s.Data()
	g.Expect(err).NotTo(HaveOccurred())
	zipped, err := base64.StdEncoding.DecodeString(string(data["config"]))
	g.Expect(err).NotTo(HaveOccurred())
	reader, err := gzip.NewReader(bytes.NewReader(zipped))
	g.Expect(err).NotTo(HaveOccurred())
	text, err := io.ReadAll(reader)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).To(Equal("documents"))
	g.Expect(data).NotTo(HaveKey("os-stream"))
	g.Expect(string(data["release-version"])).To(Equal("1.36.3"))
	key := client.ObjectKeyFromObject(s.Secret("token", "hash"))
	g.Expect(key).To(Equal(client.ObjectKey{Namespace: "clusters-demo", Name: "token-demo-hash"}))
}

// TestConfigurationHashFollowsTheHostedControlPlane checks that the token refers to the configuration of the
// HostedControlPlane, for which the ignition-server waits. References in the HostedControlPlane have the names of
// copies. Until the operator has migrated a cluster of version 0.1.0, they have the names of the user's objects.
func TestConfigurationHashFollowsTheHostedControlPlane(t *testing.T) {
	configuration := &hyperv1.ClusterConfiguration{
		Proxy: &configv1.ProxySpec{TrustedCA: configv1.ConfigMapNameReference{Name: "proxy-ca"}}}
	for name, tc := range map[string]struct {
		controlPlane, want *hyperv1.ClusterConfiguration
		again              bool
	}{
		"of version 0.1.0":        {configuration, configuration, true},
		"that names copies":       {hosted.Configuration(configuration), hosted.Configuration(configuration), false},
		"without a configuration": {nil, hosted.Configuration(configuration), false},
	} {
		t.Run("the token refers to the configuration of a HostedControlPlane "+name, func(t *testing.T) {
			w, s := tokenPass(t)
			s.HC.Spec.Configuration = configuration.DeepCopy()
			s.HCP = &hyperv1.HostedControlPlane{Spec: hyperv1.HostedControlPlaneSpec{Configuration: tc.controlPlane}}
			_, result, err := s.Reconcile(t.Context())
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(result.RequeueAfter > 0).To(Equal(tc.again))
			want, err := nodeinput.ConfigurationHash(tc.want)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(string(w.secret("token-demo-wanted").Data[hyperv1.TokenSecretHCConfigurationHashKey])).To(Equal(want))
		})
	}
}
