// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster/clustertest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// requestsOf returns requests for clusters of one namespace.
func requestsOf(namespace string, names ...string) []reconcile.Request {
	var all []reconcile.Request
	for _, name := range names {
		all = append(all, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}})
	}
	return all
}

// TestMapped checks which clusters a change of an object reconciles.
func TestMapped(t *testing.T) {
	second := fixture.HostedCluster("clusters")
	second.Name = "second"
	second.Spec.Platform.Agent = &hyperv1.AgentPlatformSpec{AgentNamespace: "agents"}
	pretends := clustertest.HostedNamespace("pretends", "clusters/demo", "")
	pretends.Labels = nil
	inside := func(namespace, name string, annotations map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: annotations}}
	}
	to := func(text string) map[string]string { return map[string]string{hyperv1.HostedClusterAnnotation: text} }
	for name, test := range map[string]struct {
		obj    client.Object
		refuse string
		want   []reconcile.Request
	}{
		"two clusters read the object, it should reconcile both": {inside("clusters", fixture.TrustBundle, nil), "",
			requestsOf("clusters", "demo", "second")},
		"the object is read by two clusters and its annotation names one of them, it should reconcile both": {inside("clusters", fixture.TrustBundle, to("clusters/demo")), "",
			requestsOf("clusters", "demo", "demo", "second")},
		"its annotation names no cluster, it should reconcile none":                                                          {inside("clusters", "x", to("demo")), "", nil},
		"the namespace is not a hosted one, it should reconcile none":                                                        {inside("pretends", "x", nil), "", nil},
		"the namespace is hosted, it should reconcile its cluster":                                                           {inside("clusters-demo", "x", nil), "", requestsOf("clusters", "demo")},
		"the namespace is hosted and the annotation names another cluster, it should reconcile the cluster of the namespace": {inside("clusters-demo", "x", to("a/b")), "", requestsOf("clusters", "demo")},
		"its annotation names the cluster of another tenant, it should reconcile none":                                       {inside("a", "x", to("clusters/demo")), "", nil},
		"an object in the agent namespace names a cluster that uses it, it should reconcile that cluster": {inside("agents", "x", to("clusters/second")), "",
			requestsOf("clusters", "second")},
		"an object in the agent namespace names a cluster that does not use it, it should reconcile none": {inside("agents", "x", to("clusters/demo")), "", nil},
		"an object in the agent namespace names a missing cluster, it should reconcile none":              {inside("agents", "x", to("clusters/gone")), "", nil},
		"the object is in the operator's namespace, it should reconcile the named cluster": {inside("hypershift", "x", to("clusters/demo")), "",
			requestsOf("clusters", "demo")},
		"the object is a hosted namespace, it should reconcile its cluster": {clustertest.HostedNamespace("clusters-demo", "clusters/demo", ""), "",
			requestsOf("clusters", "demo")},
		"the namespace cannot be read, it should reconcile none": {inside("clusters-demo", "x", nil), "get v1.PartialObjectMetadata", nil},
		"clusters cannot be listed, it should reconcile the cluster of the namespace": {inside("clusters-demo", "x", nil), "list v1beta1.HostedClusterList",
			requestsOf("clusters", "demo")},
	} {
		t.Run("When "+name, func(t *testing.T) {
			d := newDesk(fixture.HostedCluster("clusters"), second, clustertest.HostedNamespace("clusters-demo", "clusters/demo", ""),
				pretends,
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "agents"}})
			d.Settings.OperatorNamespace = "hypershift"
			d.Refuse = test.refuse
			if diff := cmp.Diff(test.want, d.ownerOrReader(t.Context(), test.obj)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	t.Run("When a NodePool changes, it should reconcile its cluster, and ignore other objects", func(t *testing.T) {
		NewWithT(t).Expect(clusterOfPool(t.Context(), &corev1.Secret{})).To(BeNil())
		NewWithT(t).Expect(clusterOfPool(t.Context(), poolAt("x", "other", ""))).To(Equal(requestsOf("clusters", "other")))
	})
}

// TestReadObjects checks the names of the objects that a cluster reads; none of them is empty.
func TestReadObjects(t *testing.T) {
	ref := func(name string) *corev1.LocalObjectReference { return &corev1.LocalObjectReference{Name: name} }
	always := []string{fixture.PullSecret, fixture.SSHKey, fixture.TrustBundle, fixture.Credentials}
	without := func(hc *hyperv1.HostedCluster) { hc.Spec.Etcd = hyperv1.EtcdSpec{} }
	for name, test := range map[string]struct {
		edit func(*hyperv1.HostedCluster)
		want []string
	}{
		"no optional reference":   {func(*hyperv1.HostedCluster) {}, nil},
		"no etcd":                 {without, nil},
		"an audit webhook":        {func(hc *hyperv1.HostedCluster) { hc.Spec.AuditWebhook = ref("audit") }, []string{"audit"}},
		"a signing key":           {func(hc *hyperv1.HostedCluster) { hc.Spec.ServiceAccountSigningKey = ref("signing") }, []string{"signing"}},
		"keys for Secrets":        {clustertest.Encrypted(hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{ActiveKey: *ref("new"), BackupKey: ref("old")}}), []string{"new", "old"}},
		"one key for encryption":  {clustertest.Encrypted(hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{ActiveKey: *ref("new")}}), []string{"new"}},
		"no key for encryption":   {clustertest.Encrypted(hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC}), nil},
		"a plugin for encryption": {clustertest.EncryptedByPlugin(ref("vault")), []string{"vault"}},
		"an unmanaged etcd": {func(hc *hyperv1.HostedCluster) {
			hc.Spec.Etcd = hyperv1.EtcdSpec{Unmanaged: &hyperv1.UnmanagedEtcdSpec{TLS: hyperv1.EtcdTLSConfig{ClientSecret: *ref("tls")}}}
		}, []string{"tls"}},
		"backups": {func(hc *hyperv1.HostedCluster) {
			hc.Spec.Etcd.Managed.AutomatedBackup = &hyperv1.AutomatedEtcdBackupConfig{EncryptionKey: hyperv1.SecretReference{Name: "age"}}
		}, []string{"age"}},
		"backups in S3": {func(hc *hyperv1.HostedCluster) {
			hc.Spec.Etcd.Managed.AutomatedBackup = &hyperv1.AutomatedEtcdBackupConfig{EncryptionKey: hyperv1.SecretReference{Name: "age"},
				Storage: hyperv1.AutomatedEtcdBackupStorage{S3: &hyperv1.HCPEtcdBackupS3{Credentials: hyperv1.SecretReference{Name: "s3"}}}}
		}, []string{"age", "s3"}},
	} {
		t.Run("When there is "+name+", the cluster should read exactly what it references", func(t *testing.T) {
			hc := fixture.HostedCluster("clusters")
			test.edit(hc)
			NewWithT(t).Expect(newDesk().readBy(hc)).To(ConsistOf(append(append([]string{}, always...), test.want...)))
		})
	}
	t.Run("When the platform is not known, it should read no credentials", func(t *testing.T) {
		hc := fixture.HostedCluster("clusters")
		hc.Spec.Platform.Type = "Unknown"
		NewWithT(t).Expect(newDesk().readBy(hc)).To(ConsistOf(always[:3]))
	})
}

// later is a queue that records delayed requests.
type later struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	asked []reconcile.Request
	after time.Duration
}

func (l *later) AddAfter(request reconcile.Request, after time.Duration) {
	l.asked, l.after = append(l.asked, request), after
}

// TestWhenMonitored checks that clusters are reconciled with a delay after a Prometheus operator was installed.
func TestWhenMonitored(t *testing.T) {
	second := fixture.HostedCluster("others")
	both := append(requestsOf("clusters", "demo"), requestsOf("others", "demo")...)
	for name, test := range map[string]struct {
		crd, refuse string
		want        []reconcile.Request
	}{
		"a CRD of the Prometheus operator is created, it should reconcile all clusters":  {"servicemonitors.monitoring.coreos.com", "", both},
		"an unrelated CRD is created, it should reconcile none":                          {"things.example.com", "", nil},
		"a CRD of another group with the same kind is created, it should reconcile none": {"servicemonitors.othermonitoring.coreos.com", "", nil},
		"clusters cannot be listed, it should reconcile none":                            {"podmonitors.monitoring.coreos.com", "list v1beta1.HostedClusterList", nil},
	} {
		t.Run("When "+name, func(t *testing.T) {
			d := newDesk(fixture.HostedCluster("clusters"), second)
			d.Refuse = test.refuse
			crd, made, changed := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: test.crd}}, &later{}, &later{}
			d.whenMonitored().Create(t.Context(), event.CreateEvent{Object: crd}, made)
			d.whenMonitored().Update(t.Context(), event.UpdateEvent{ObjectOld: &apiextensionsv1.CustomResourceDefinition{}, ObjectNew: crd}, changed)
			for _, queue := range []*later{made, changed} {
				if diff := cmp.Diff(test.want, queue.asked); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
				if test.want != nil {
					NewWithT(t).Expect(queue.after).To(Equal(10 * time.Second))
				}
			}
		})
	}
}
