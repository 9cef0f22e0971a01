// SPDX-License-Identifier: Apache-2.0

package security

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	v2 "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2"
	planes "github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/platforms"
)

// usedNames are the names of Secrets and ConfigMaps that a control plane, its managers and the platforms use, as the
// code makes them.
func usedNames(t *testing.T) []string {
	t.Helper()
	g := NewWithT(t)
	hcp := planes.ControlPlane()
	hcp.UID = "1234"
	hcp.Spec.KubeAPIServerDNSName = "api.example.com"
	hcp.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC,
		AESCBC: &hyperv1.AESCBCSpec{ActiveKey: corev1.LocalObjectReference{Name: hosted.CopyName(hosted.UseEncryptionKey,
			"key")}}}
	c := fake.NewClientBuilder().WithScheme(planes.Scheme()).WithObjects(hcp).Build()
	scope := &component.Scope{Client: c, HCP: hcp, Version: "1.36.3", Images: anyImage{}, Infra: &component.Infra{
		API: component.Endpoint{Host: "192.0.2.10", Port: 30443}, Ignition: component.Endpoint{Host: "192.0.2.10"}}}
	certificates := &pki.Reconciler{Client: c, Clock: testingclock.NewFakePassiveClock(time.Now())}
	g.Expect(certificates.Reconcile(t.Context(), hcp, scope.Infra)).To(Succeed())
	secrets, configMaps := &corev1.SecretList{}, &corev1.ConfigMapList{}
	g.Expect(c.List(t.Context(), secrets)).To(Succeed())
	g.Expect(c.List(t.Context(), configMaps)).To(Succeed())
	used := sets.New(hosted.PullSecret, hosted.KubevirtCredentials, hosted.LastValidSpec, "kube-root-ca.crt")
	for i := range secrets.Items {
		used.Insert(secrets.Items[i].Name)
	}
	for i := range configMaps.Items {
		used.Insert(configMaps.Items[i].Name)
	}
	components := v2.Kubernetes(v2.Config{})
	plugins := fixture.Platforms(nil)
	for _, platformType := range platforms.Known() {
		plugin, _ := plugins.For(platformType)
		if plugin == nil {
			continue
		}
		hc := fixture.HostedCluster("clusters")
		hc.Spec.InfraID = hcp.Spec.InfraID
		hc.Spec.Platform = hyperv1.PlatformSpec{Type: platformType, MAAS: hc.Spec.Platform.MAAS,
			AWS:   &hyperv1.AWSPlatformSpec{},
			Agent: &hyperv1.AgentPlatformSpec{}, Kubevirt: &hyperv1.KubevirtPlatformSpec{}}
		if provider := plugin.Provider(platform.Cluster{HostedCluster: hc, ControlPlane: hcp,
			Namespace: hcp.Namespace}); provider != nil {
			components = append(components, provider)
		}
	}
	for _, part := range components {
		namesIn(t, part.Manifests, used)
	}
	g.Expect(used.Len()).To(BeNumerically(">", 50), "%v", sets.List(used))
	return sets.List(used)
}

// namesIn adds the names of the Secrets and ConfigMaps that manifests make, mount or read.
func namesIn(t *testing.T, manifests fs.FS, used sets.Set[string]) {
	t.Helper()
	err := fs.WalkDir(manifests, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		raw, err := fs.ReadFile(manifests, path)
		if err != nil {
			return err
		}
		var object map[string]any
		if err := yaml.Unmarshal(raw, &object); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if kind := object["kind"]; kind == "Secret" || kind == "ConfigMap" {
			metadata, is := object["metadata"].(map[string]any)
			if !is {
				return errors.New(path + " has no metadata")
			}
			used.Insert(metadata["name"].(string))
		}
		mentioned(object, used)
		return nil
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

func mentioned(value any, used sets.Set[string]) {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			named, _ := field.(map[string]any)
			switch name := named["name"].(type) {
			case string:
				if slices.Contains([]string{"secret", "configMap", "secretRef", "configMapRef", "secretKeyRef", "configMapKeyRef"},
					key) {
					used.Insert(name)
				}
			}
			if text, is := field.(string); is && key == "secretName" {
				used.Insert(text)
			}
			mentioned(field, used)
		}
	case []any:
		for _, item := range v {
			mentioned(item, used)
		}
	}
}

// TestNamesOfTheControlPlane: no name that a program of ours uses has the form of a copy's name. The list is made by
// the code that uses the names, so a component with a new name is covered when it is added.
func TestNamesOfTheControlPlane(t *testing.T) {
	for _, name := range usedNames(t) {
		for _, use := range []hosted.Use{
			hosted.UseConfiguration, hosted.UseTokenWebhook, hosted.UseAuditWebhook, hosted.UseEncryptionKey,
			hosted.UseKMSCredentials,
			hosted.UseEtcdClient, hosted.UseBackupKey, hosted.UseBackupStorage, hosted.UsePlatform,
		} {
			g := NewWithT(t)
			g.Expect(hosted.IsCopyName(name)).To(BeFalse(), "%s could be the name of a copy", name)
			g.Expect(hosted.CopyName(use, name)).NotTo(Equal(name))
		}
	}
}

const stolen = "a tenant wrote this"

// TestReferencesByNamesOfTheControlPlane refers to an object of each used name, by identity providers and by each other
// field. Version 0.1.0 put the tenant's content under the name, where the programs of the control plane, its managers
// and the operator read it.
func TestReferencesByNamesOfTheControlPlane(t *testing.T) {
	o := newOperator(t, "mallory-names")
	hc := fixture.HostedCluster(o.tenant)
	hc.Spec.InfraID = planes.ControlPlane().Spec.InfraID
	hc.Spec.Configuration = &hyperv1.ClusterConfiguration{OAuth: &configv1.OAuthSpec{},
		APIServer: &configv1.APIServerSpec{}}
	names := append(usedNames(t), "hypershift-operator", "capi-webhooks-tls", "sa-signing-key", "ssh-key", "kms-creds",
		"cloud-controller-creds",
		hosted.ClusterAPIKubeconfig(hc.Spec.InfraID), hosted.ProviderKubeconfig(hc.Spec.InfraID))
	slices.Sort(names)
	names = slices.Compact(names)
	data := map[string]string{"x": stolen, "key": stolen, "webhook-kubeconfig": stolen, "kubeconfig": stolen,
		"value": stolen, "ca.crt": stolen, "spec.json": stolen}
	objects := append(fixture.Inputs(o.tenant), hc)
	for i, name := range names {
		meta := metav1.ObjectMeta{Namespace: o.tenant, Name: name,
			Labels: map[string]string{hyperv1.OperatorObjectLabel: "true", hyperv1.NodePoolAnnotation: "x"}}
		objects = append(objects, &corev1.Secret{ObjectMeta: meta, StringData: data},
			&corev1.ConfigMap{ObjectMeta: meta, Data: data})
		hc.Spec.Configuration.OAuth.IdentityProviders = append(hc.Spec.Configuration.OAuth.IdentityProviders,
			configv1.IdentityProvider{Name: fmt.Sprintf("secret-%d", i), MappingMethod: configv1.MappingMethodClaim,
				IdentityProviderConfig: configv1.IdentityProviderConfig{
					Type:     configv1.IdentityProviderTypeHTPasswd,
					HTPasswd: &configv1.HTPasswdIdentityProvider{FileData: configv1.SecretNameReference{Name: name}}}},
			configv1.IdentityProvider{Name: fmt.Sprintf("config-%d", i), MappingMethod: configv1.MappingMethodClaim,
				IdentityProviderConfig: configv1.IdentityProviderConfig{
					Type: configv1.IdentityProviderTypeBasicAuth,
					BasicAuth: &configv1.BasicAuthIdentityProvider{OAuthRemoteConnectionInfo: configv1.OAuthRemoteConnectionInfo{
						URL: "https://users.example", CA: configv1.ConfigMapNameReference{Name: name}}}}})
	}
	hc.Spec.AuditWebhook = &corev1.LocalObjectReference{Name: "kas-webhooks"}
	hc.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC,
		AESCBC: &hyperv1.AESCBCSpec{ActiveKey: corev1.LocalObjectReference{Name: "kas-secret-encryption-config"}}}
	fixture.Create(t, o.client, objects...)
	o.pass()

	secrets, configMaps := &corev1.SecretList{}, &corev1.ConfigMapList{}
	o.Expect(o.client.List(t.Context(), secrets, client.InNamespace(o.hosted()))).To(Succeed())
	o.Expect(o.client.List(t.Context(), configMaps, client.InNamespace(o.hosted()))).To(Succeed())
	copies := 0
	check := func(obj client.Object, content string) {
		if !strings.Contains(content, stolen) {
			return
		}
		copies++
		o.Expect(hosted.IsCopyName(obj.GetName())).To(BeTrue(), "%T %s holds what a tenant wrote", obj, obj.GetName())
		o.Expect(hosted.Trusted(obj)).NotTo(Succeed(), "%T %s", obj, obj.GetName())
		o.Expect(obj.GetLabels()).To(And(HaveKey(hyperv1.UserCopyLabel), Not(HaveKey(hyperv1.NodePoolAnnotation))),
			"labels of tenants are not copied")
		o.Expect(obj.GetOwnerReferences()).To(BeEmpty())
	}
	for i := range secrets.Items {
		check(&secrets.Items[i], fmt.Sprintf("%s", secrets.Items[i].Data))
	}
	for i := range configMaps.Items {
		check(&configMaps.Items[i], fmt.Sprint(configMaps.Items[i].Data))
	}
	o.Expect(copies).To(BeNumerically(">=", 2*len(names)), "the references themselves work")
}
