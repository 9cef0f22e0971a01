// SPDX-License-Identifier: Apache-2.0

// Package nodeinputs runs the operator's two controllers and the ignition-server on one management cluster, and
// checks the configuration of new machines.
package nodeinputs

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	igncfg "github.com/coreos/ignition/v2/config/v3_4"
	"github.com/vincent-petithory/dataurl"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/ignition-server/payload"
	"github.com/openshift/hypershift/ignition-server/token"
	"github.com/openshift/hypershift/support/nodeplan"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/releaseinfo/releasetest"
)

func TestMain(m *testing.M) { fixture.Main(m) }

// world is a fixture with one hosted cluster, one pool, and the processes that reconcile them.
type world struct {
	*GomegaWithT
	t         *testing.T
	client    client.WithWatch
	namespace string
	registry  *releasetest.Registry
	releases  fixture.Releases

	clusters *hostedcluster.Reconciler
	pools    *nodepool.Reconciler
	tokens   *token.Reconciler
	cache    *token.Cache
}

func newWorld(t *testing.T, registry *releasetest.Registry, namespace string) *world {
	t.Helper()
	w := &world{GomegaWithT: NewWithT(t), t: t, client: fixture.Start(t), namespace: namespace, registry: registry, releases: fixture.Releases{}}
	clock := testingclock.NewFakeClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	w.clusters = &hostedcluster.Reconciler{Client: w.client, LiveReader: w.client, Clock: clock, Recorder: &events.FakeRecorder{},
		Releases: w.releases, Platforms: fixture.Platforms(nil), Settings: hostedcluster.Settings{OperatorImage: "registry.example/hypershift:1"}}
	w.pools = &nodepool.Reconciler{Client: w.client, Clock: clock, Recorder: &events.FakeRecorder{}, Releases: w.releases, Platforms: fixture.Platforms(nil)}
	w.cache = token.NewCache(clock)
	w.tokens = &token.Reconciler{Client: w.client, Cache: w.cache, Clock: clock, Recorder: &events.FakeRecorder{},
		Generator: &payload.Generator{Client: w.client, Namespace: w.hosted()}}

	hc, pool := fixture.HostedCluster(namespace), fixture.NodePool(namespace)
	hc.Spec.InfraID = "demo-abcde"
	hc.Spec.Release.Image = w.release("1.36.3", "1")
	pool.Spec.Release.Image = hc.Spec.Release.Image
	inputs := fixture.Inputs(namespace)
	for _, obj := range inputs {
		if bundle, is := obj.(*corev1.ConfigMap); is {
			bundle.Data["ca-bundle.crt"] = string(registry.CA)
		}
	}
	fixture.Create(t, w.client, append(inputs, hc, pool)...)
	w.reconcileCluster()
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: w.hosted(), Name: name} }
	fixture.Create(t, w.client,
		&corev1.Secret{ObjectMeta: meta("ignition-server-ca-cert"), Data: map[string][]byte{"tls.crt": []byte("CA")}},
		&corev1.Secret{ObjectMeta: meta("bootstrap-kubeconfig"), Data: map[string][]byte{"kubeconfig": []byte(bootstrapKubeconfig)}},
		&corev1.ConfigMap{ObjectMeta: meta("kubelet-client-ca"), Data: map[string]string{"ca.crt": "client CA"}})
	w.settle()
	return w
}

const bootstrapKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://api.example:31443"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
users: [{name: u, user: {}}]
`

func (w *world) hosted() string { return fixture.Hosted(w.namespace) }

// release pushes a payload whose images have the given tag.
func (w *world) release(version, tag string) string {
	w.t.Helper()
	p := releaseinfo.Payload{Version: version, Distribution: releaseinfo.Kubernetes, Components: map[string]string{
		"node": "registry.example/node:" + tag, "pod": "registry.example/pod:" + tag, "cluster-capi-controllers": "registry.example/capi:1",
		"kube-apiserver": "registry.example/kube-apiserver:1",
	}}
	image := w.registry.PushRelease(w.t, p)
	w.releases[image] = releaseinfo.New(image, p)
	return image
}

func (w *world) cluster() *hyperv1.HostedCluster {
	w.t.Helper()
	hc := &hyperv1.HostedCluster{}
	w.get(hc, w.namespace, fixture.ClusterName)
	return hc
}

func (w *world) get(obj client.Object, namespace, name string) {
	w.t.Helper()
	w.Expect(w.client.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj)).To(Succeed())
}

// change updates an object of the user.
func change[T client.Object](w *world, obj T, name string, mutate func(T)) {
	w.t.Helper()
	w.get(obj, w.namespace, name)
	mutate(obj)
	w.Expect(w.client.Update(w.t.Context(), obj)).To(Succeed())
}

func (w *world) reconcileCluster() {
	w.t.Helper()
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: w.namespace, Name: fixture.ClusterName}}
	for range 2 {
		_, err := w.clusters.Reconcile(w.t.Context(), request)
		w.Expect(err).NotTo(HaveOccurred())
	}
	hc := w.cluster()
	hc.Status.IgnitionEndpoint, hc.Status.KubeConfig = "172.30.240.1:30443", &corev1.LocalObjectReference{Name: "demo-admin-kubeconfig"}
	w.Expect(w.client.Status().Update(w.t.Context(), hc)).To(Succeed())
}

func (w *world) reconcilePool() {
	w.t.Helper()
	_, err := w.pools.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: w.namespace, Name: fixture.PoolName}})
	w.Expect(err).NotTo(HaveOccurred())
}

func (w *world) reconcileTokens() {
	w.t.Helper()
	secrets := &corev1.SecretList{}
	w.Expect(w.client.List(w.t.Context(), secrets, client.InNamespace(w.hosted()))).To(Succeed())
	for i := range secrets.Items {
		if token.IsTokenSecret(secrets.Items[i].Annotations) {
			_, err := w.tokens.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&secrets.Items[i])})
			w.Expect(err).NotTo(HaveOccurred())
		}
	}
}

// settle runs all controllers until the change of an input has reached the token Secret.
func (w *world) settle() {
	w.t.Helper()
	w.reconcileCluster()
	w.reconcilePool()
	w.reconcileTokens()
	w.reconcilePool()
}

// userData returns the name of the user-data Secret for new machines; empty if there is none yet.
func (w *world) userData() string {
	w.t.Helper()
	md := &clusterv1.MachineDeployment{}
	err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.hosted(), Name: fixture.PoolName}, md)
	if apierrors.IsNotFound(err) {
		return ""
	}
	w.Expect(err).NotTo(HaveOccurred())
	return ptr.Deref(md.Spec.Template.Spec.Bootstrap.DataSecretName, "")
}

func (w *world) condition(conditionType string) hyperv1.NodePoolCondition {
	w.t.Helper()
	pool := &hyperv1.NodePool{}
	w.get(pool, w.namespace, fixture.PoolName)
	for _, c := range pool.Status.Conditions {
		if c.Type == conditionType {
			return c
		}
	}
	return hyperv1.NodePoolCondition{}
}

// node returns the configuration of a new machine of the pool, by file, unit and user.
func (w *world) node() map[string]string {
	w.t.Helper()
	secret := &corev1.Secret{}
	w.get(secret, w.hosted(), strings.Replace(w.userData(), "user-data-", "token-", 1))
	entry, served := w.cache.Get(string(secret.Data[token.TokenKey]))
	w.Expect(served).To(BeTrue(), "%s: %s", secret.Data[token.ReasonKey], secret.Data[token.MessageKey])
	cfg, _, err := igncfg.Parse(entry.Payload)
	w.Expect(err).NotTo(HaveOccurred())
	parts := map[string]string{}
	for _, f := range cfg.Storage.Files {
		parts[f.Path] = ptr.Deref(f.Contents.Source, "")
	}
	parts[nodeplan.Path] = w.rest(parts[nodeplan.Path])
	for _, u := range cfg.Systemd.Units {
		parts["unit "+u.Name] = ptr.Deref(u.Contents, "")
		for _, d := range u.Dropins {
			parts["unit "+u.Name] += d.Name + ptr.Deref(d.Contents, "")
		}
	}
	for _, u := range cfg.Passwd.Users {
		for _, key := range u.SSHAuthorizedKeys {
			parts["user "+u.Name] += string(key)
		}
	}
	return parts
}

// rest returns a plan without the fields that change with any other part: the configuration hash and the list of
// files.
func (w *world) rest(source string) string {
	w.t.Helper()
	raw, err := dataurl.DecodeString(source)
	w.Expect(err).NotTo(HaveOccurred())
	plan, err := nodeplan.Parse(raw.Data)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(plan.ConfigHash).NotTo(BeEmpty())
	plan.ConfigHash, plan.Owned = "", nil
	text, err := json.Marshal(plan)
	w.Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// differences returns the parts in which two nodes differ, sorted.
func differences(a, b map[string]string) []string {
	different := map[string]bool{}
	for part := range a {
		different[part] = a[part] != b[part]
	}
	for part := range b {
		if _, known := a[part]; !known {
			different[part] = true
		}
	}
	maps.DeleteFunc(different, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(different))
}
