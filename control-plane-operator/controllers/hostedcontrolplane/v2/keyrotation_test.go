// SPDX-License-Identifier: Apache-2.0

package v2

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubeapiserver"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/reencryption"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/pause"
	"github.com/openshift/hypershift/support/testenv"
)

// TestKeyRotation takes two real API servers of one etcd through every step of a migration, one after the other.
// Between any two steps, it reads and writes Secrets through both. It covers the first encryption and a change of the
// key.
func TestKeyRotation(t *testing.T) {
	r := newRotation(t, 2)
	r.settle()
	r.use("first enabling", "key-1")
	r.use("another key", "key-2")
	config := r.config()
	if n := bytes.Count(config.Data["config.yaml"], []byte("secret:")); n != 1 {
		t.Errorf("the old key is still there:\n%s", config.Data["config.yaml"])
	}
}

// configHash is the annotation of a pod template that changes with the files of its pods.
const configHash = "component.hypershift.openshift.io/config-hash"

// rotation is a control plane with one or more API servers. The test replaces their pods as a Deployment would.
type rotation struct {
	t       *testing.T
	scope   *component.Scope
	servers []*machine
	stops   []func()
	guests  []client.Client
	written int
	// running is the configuration of the running servers.
	running string
}

func newRotation(t *testing.T, servers int) *rotation {
	binaries := findBinaries(t)
	keys := []client.Object{
		secret("key-1", map[string][]byte{"key": bytes.Repeat([]byte{1}, 32)}), secret("key-2", map[string][]byte{"key": bytes.Repeat([]byte{2}, 32)}),
	}
	scope := newScope(controlPlane(), keys...)
	scope.Infra.API.Host = "127.0.0.1"
	withPKI(t, scope)
	ports := map[string]string{}
	for _, port := range []string{"2379", "2380", "2381"} {
		ports[port] = strconv.Itoa(testenv.FreePort(t))
	}
	r := &rotation{t: t, scope: scope, stops: make([]func(), servers), guests: make([]client.Client, servers)}
	for range servers {
		own := maps.Clone(ports)
		own["6443"] = strconv.Itoa(testenv.FreePort(t))
		r.servers = append(r.servers, &machine{t: t, scope: scope, root: t.TempDir(), binaries: binaries, ports: own})
	}
	if err := etcd.New().Reconcile(t.Context(), scope); err != nil {
		t.Fatal(err)
	}
	ready(t, scope, etcd.Name)
	r.servers[0].run(etcd.New())
	return r
}

func (r *rotation) config() *corev1.Secret {
	r.t.Helper()
	config := &corev1.Secret{}
	r.servers[0].get(kubeapiserver.EncryptionSecret, config)
	return config
}

// use sets a key in a Secret as the cluster's encryption key, and continues until no other key is in use.
func (r *rotation) use(what, key string) {
	r.t.Helper()
	r.goOver(what, &hyperv1.SecretEncryptionSpec{
		Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{ActiveKey: corev1.LocalObjectReference{Name: key}},
	})
}

// goOver changes the encryption in the cluster's spec, and continues until the migration is completed.
func (r *rotation) goOver(what string, to *hyperv1.SecretEncryptionSpec) {
	r.t.Helper()
	r.scope.HCP.Spec.SecretEncryption = to
	var stages []string
	for range 10 {
		r.settle()
		stage := r.config().Annotations[kubeapiserver.EncryptionStage]
		stages = append(stages, stage)
		switch hyperv1.EncryptionMigrationState(stage) {
		case hyperv1.EncryptionMigrationMigrating:
			r.stays("before all that is stored was rewritten")
			r.migrate()
		case hyperv1.EncryptionMigrationCompleted:
			r.t.Logf("%s: %v", what, stages)
			if len(stages) != 4 {
				r.t.Fatalf("%s took the steps %v", what, stages)
			}
			return
		}
	}
	r.t.Fatalf("%s does not end: %v", what, stages)
}

// settle reconciles the API server, replaces its processes one after the other if a Deployment would replace their
// pods, and reports them.
func (r *rotation) settle() {
	r.t.Helper()
	kas := kubeapiserver.New()
	if err := kas.Reconcile(r.t.Context(), r.scope); err != nil {
		r.t.Fatal(err)
	}
	d := &appsv1.Deployment{}
	r.servers[0].get(kubeapiserver.Name, d)
	template := d.Spec.Template
	if hash := template.Annotations[configHash]; hash != r.running {
		r.running = hash
		for i := range r.servers {
			r.replace(i, kas)
			r.report(i, template.Annotations)
			r.check(fmt.Sprintf("server %d of %d went on to %v", i+1, len(r.servers), template.Annotations["hypershift.openshift.io/encryption-config"]))
			if i+1 < len(r.servers) {
				r.stays("while not all servers have gone on")
			}
		}
	}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	if err := r.scope.Client.Status().Update(r.t.Context(), d); err != nil {
		r.t.Fatal(err)
	}
}

// stays reconciles the API server once more, which must not take a step.
func (r *rotation) stays(when string) {
	r.t.Helper()
	if err := kubeapiserver.New().Reconcile(r.t.Context(), r.scope); err != nil {
		r.t.Fatal(err)
	}
	if r.template().Annotations[configHash] != r.running {
		r.t.Fatalf("it takes another step %s", when)
	}
}

func (r *rotation) template() corev1.PodTemplateSpec {
	r.t.Helper()
	return r.servers[0].template()
}

// template returns the pod template of the API server.
func (m *machine) template() corev1.PodTemplateSpec {
	m.t.Helper()
	d := &appsv1.Deployment{}
	m.get(kubeapiserver.Name, d)
	return d.Spec.Template
}

// replace restarts an API server with the current files.
func (r *rotation) replace(i int, kas *component.Component) {
	r.t.Helper()
	if r.stops[i] != nil {
		r.stops[i]()
	}
	m := r.servers[i]
	r.stops[i] = m.run(kas)
	kubeconfig := &corev1.Secret{}
	m.get(pki.ServiceNetworkKubeconfig, kubeconfig)
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(m.localize(string(kubeconfig.Data["kubeconfig"]), nil)))
	if err != nil {
		r.t.Fatal(err)
	}
	if r.guests[i], err = client.New(config, client.Options{Scheme: fixture.Scheme()}); err != nil {
		r.t.Fatal(err)
	}
}

// report creates or updates the pod of an API server.
func (r *rotation) report(i int, annotations map[string]string) {
	r.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: fmt.Sprintf("kube-apiserver-%d", i), Labels: map[string]string{"app": kubeapiserver.Name}, Annotations: annotations,
	}}
	if err := client.IgnoreNotFound(r.scope.Client.Delete(r.t.Context(), pod.DeepCopy())); err != nil {
		r.t.Fatal(err)
	}
	if err := r.scope.Client.Create(r.t.Context(), pod); err != nil {
		r.t.Fatal(err)
	}
}

// check writes a Secret through each running server, and lists all of them through each.
func (r *rotation) check(when string) {
	r.t.Helper()
	for i, guest := range r.guests {
		if guest == nil {
			continue
		}
		r.written++
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("s-%d", r.written)}, StringData: map[string]string{"a": "b"}}
		if err := guest.Create(r.t.Context(), s); err != nil {
			r.t.Fatalf("when %s, server %d does not write: %v", when, i+1, err)
		}
	}
	for i, guest := range r.guests {
		if guest == nil {
			continue
		}
		list := &corev1.SecretList{}
		if err := guest.List(r.t.Context(), list, client.InNamespace("default")); err != nil {
			r.t.Fatalf("when %s, server %d does not list: %v", when, i+1, err)
		}
		if len(list.Items) != r.written {
			r.t.Fatalf("when %s, server %d lists %d of %d Secrets", when, i+1, len(list.Items), r.written)
		}
	}
}

// migrate runs the re-encryption of the config operator.
func (r *rotation) migrate() {
	r.t.Helper()
	r.reencrypt(r.reencryption(clocktesting.NewFakePassiveClock(now)))
}

// reencryption returns the controller of the config operator.
func (r *rotation) reencryption(clock clock.PassiveClock) *reencryption.Reconciler {
	return &reencryption.Reconciler{
		Guest: r.guests[0], Management: r.scope.Client, Namespace: namespace, Clock: clock,
		Pause: pause.Gate{Management: r.scope.Client, ControlPlane: client.ObjectKeyFromObject(r.scope.HCP), Clock: clock},
		Metrics: func(ctx context.Context) ([]byte, error) {
			guest, err := kubernetes.NewForConfig(r.servers[0].guestConfig())
			if err != nil {
				return nil, err
			}
			return guest.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
		},
	}
}

func (r *rotation) reencrypt(m *reencryption.Reconciler) {
	r.t.Helper()
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: kubeapiserver.EncryptionSecret}}
	if _, err := m.Reconcile(r.t.Context(), request); err != nil {
		r.t.Fatal(err)
	}
}
