// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	component "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/testenv"
)

const (
	namespace = fixture.Namespace
	// healing is the timeout for the repair of a member on a busy machine.
	healing = 3 * time.Minute
)

// world is a management cluster whose fake kubelet runs real etcd members on the loopback.
type world struct {
	t        *testing.T
	client   client.WithWatch
	clock    *clocktesting.FakePassiveClock
	hcp      *hyperv1.HostedControlPlane
	members  map[string]*process
	operator *Reconciler
	// dies makes the operator stop after each change.
	dies bool
	// patience is the timeout for an answer of a member; a second if zero. If all members are up, a longer timeout costs
	// nothing.
	patience time.Duration
	// done are the steps that called etcd.
	done []string
	// restarted are the pods that were recreated, in their order.
	restarted []string
	// revision is the revision of new pods.
	revision string
	// pages maps pods to metrics that replace the metrics of their members.
	pages map[string]string
}

func newWorld(t *testing.T, api client.WithWatch, policy hyperv1.AvailabilityPolicy, edit ...func(*hyperv1.HostedControlPlane)) *world {
	t.Helper()
	w := &world{t: t, client: api, clock: clocktesting.NewFakePassiveClock(time.Now()), members: map[string]*process{}, hcp: fixture.ControlPlane()}
	w.hcp.Spec.ControllerAvailabilityPolicy = policy
	for _, change := range edit {
		change(w.hcp)
	}
	labels := map[string]string{"app": "etcd"}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "etcd"}, Spec: appsv1.StatefulSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec()},
	}}
	for _, obj := range []client.Object{w.hcp, set} {
		w.must(api.Create(t.Context(), obj))
	}
	for _, pod := range component.Pods(w.hcp) {
		w.members[pod] = &process{client: strconv.Itoa(testenv.FreePort(t)), peer: strconv.Itoa(testenv.FreePort(t)), metrics: strconv.Itoa(testenv.FreePort(t))}
	}
	w.operator = w.reconciler()
	t.Cleanup(w.tearDown)
	return w
}

func newAPI(t *testing.T, folders ...string) client.WithWatch {
	t.Helper()
	api, err := client.NewWithWatch(testenv.Start(t, folders...), client.Options{Scheme: fixture.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range fixture.HostedNamespace() {
		if err := api.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	return api
}

// tearDown empties the namespace for the next test.
func (w *world) tearDown() {
	ctx := context.Background()
	for _, p := range w.members {
		p.stop()
	}
	for _, kind := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &appsv1.StatefulSet{}, &hyperv1.HostedControlPlane{}, &corev1.ConfigMap{}} {
		if claim, ok := kind.(*corev1.PersistentVolumeClaim); ok {
			w.releaseAll(ctx, claim)
			continue
		}
		if err := w.client.DeleteAllOf(ctx, kind, client.InNamespace(namespace), client.GracePeriodSeconds(0)); err != nil {
			w.t.Error(err)
		}
	}
}

// releaseAll deletes claims and removes their finalizer, since no controller of this API server does.
func (w *world) releaseAll(ctx context.Context, claim *corev1.PersistentVolumeClaim) {
	for pod := range w.members {
		claim.Namespace, claim.Name = namespace, component.ClaimName(pod)
		err := w.client.Get(ctx, client.ObjectKeyFromObject(claim), claim)
		if err == nil {
			claim.Finalizers = nil
			err = errors.Join(w.client.Update(ctx, claim), w.client.Delete(ctx, claim))
		}
		if client.IgnoreNotFound(err) != nil {
			w.t.Error(err)
		}
		*claim = corev1.PersistentVolumeClaim{}
	}
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "etcd", Image: "etcd"}}}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// kubelet creates missing pods and claims, starts containers that have ended, and reports the status of the containers.
func (w *world) kubelet() {
	w.t.Helper()
	for pod, p := range w.members {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: component.ClaimName(pod)}}
		claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		live := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod, Labels: map[string]string{
			"app": "etcd", appsv1.StatefulSetRevisionLabel: w.revision}}, Spec: podSpec()}
		w.ensure(claim)
		w.ensure(live)
		if string(live.UID) != p.uid {
			if p.uid != "" {
				w.restarted = append(w.restarted, pod)
			}
			p.stop()
			p.uid, p.restarts = string(live.UID), 0
		}
		w.runs(p, live, claim)
	}
}

func (w *world) ensure(obj client.Object) {
	w.t.Helper()
	err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj)
	if err != nil && client.IgnoreNotFound(err) == nil {
		err = w.client.Create(w.t.Context(), obj)
	}
	w.must(err)
}

func (w *world) runs(p *process, live *corev1.Pod, claim *corev1.PersistentVolumeClaim) {
	w.t.Helper()
	status := corev1.ContainerStatus{Name: "etcd", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	switch {
	case p.off:
		p.stop()
	case p.cmd == nil:
		p.start(w, live.Name, w.volume(claim))
	default:
		select {
		case <-p.ended:
			p.cmd = nil
			p.restarts++
			status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		default:
		}
	}
	status.RestartCount = p.restarts
	live.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	live.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: p.readiness()}}
	w.must(client.IgnoreNotFound(w.client.Status().Update(w.t.Context(), live)))
}

// volume returns the directory of a claim: a new claim has an empty volume.
func (w *world) volume(claim *corev1.PersistentVolumeClaim) string {
	dir := filepath.Join(os.TempDir(), "etcd-"+string(claim.UID))
	w.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w.must(os.MkdirAll(dir, 0o700))
	return dir
}

func (w *world) wipe(pod string) {
	w.t.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	w.must(w.client.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: component.ClaimName(pod)}, claim))
	w.members[pod].stop()
	w.must(os.RemoveAll(w.volume(claim)))
}

// replaceVolume replaces a volume as a user does, or a controller that cleans up after a node with a local volume
// failed.
func (w *world) replaceVolume(pod string) {
	w.t.Helper()
	w.members[pod].stop()
	for _, obj := range []client.Object{
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: component.ClaimName(pod)}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod}},
	} {
		w.must(w.client.Delete(w.t.Context(), obj))
		// No controller of this API server removes the finalizer once the pod is gone.
		if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok {
			w.released(claim)
		}
	}
}

func (w *world) released(claim *corev1.PersistentVolumeClaim) {
	w.t.Helper()
	err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(claim), claim)
	if err == nil && !claim.DeletionTimestamp.IsZero() {
		claim.Finalizers = nil
		err = w.client.Update(w.t.Context(), claim)
	}
	w.must(client.IgnoreNotFound(err))
}

// config returns the member's own configuration, changed to the loopback and without its certificates.
func (w *world) config(pod, dir string) string {
	w.t.Helper()
	notes, err := component.ReadNotes(w.t.Context(), w.client, namespace)
	w.must(err)
	text, err := yaml.Marshal(component.Settings(w.hcp, pod, notes[pod].Stage, component.Quota(w.hcp, nil)))
	w.must(err)
	settings := map[string]any{}
	w.must(yaml.Unmarshal(text, &settings))
	for _, tls := range []string{"client-transport-security", "peer-transport-security", "tls-min-version", "cipher-suites"} {
		delete(settings, tls)
	}
	self := w.members[pod]
	settings["data-dir"], settings["log-level"] = dir, "warn"
	settings["listen-metrics-urls"] = "http://127.0.0.1:" + self.metrics
	settings["listen-peer-urls"], settings["listen-client-urls"] = w.peerURL(namespace, pod), w.clientURL(namespace, pod)
	text, err = yaml.Marshal(settings)
	w.must(err)
	moved := string(text)
	for other := range w.members {
		moved = strings.ReplaceAll(moved, component.PeerURL(namespace, other), w.peerURL(namespace, other))
		moved = strings.ReplaceAll(moved, component.ClientURL(namespace, other), w.clientURL(namespace, other))
	}
	return moved
}

// changed sets a new revision in the StatefulSet.
func (w *world) changed(revision string) {
	w.t.Helper()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: component.Name}}
	w.must(w.client.Get(w.t.Context(), client.ObjectKeyFromObject(set), set))
	set.Status.UpdateRevision, w.revision = revision, revision
	w.must(w.client.Status().Update(w.t.Context(), set))
}

func (w *world) clientURL(_, pod string) string { return "http://127.0.0.1:" + w.members[pod].client }
func (w *world) peerURL(_, pod string) string   { return "http://127.0.0.1:" + w.members[pod].peer }

// errDied is the result of a call after which the operator stopped.
var errDied = errors.New("the operator died")

func (w *world) reconciler() *Reconciler {
	return &Reconciler{Client: w.client, Live: w.client, Clock: w.clock, Dial: w.dial, Scrape: w.scrape, PeerURL: w.peerURL, ClientURL: w.clientURL, AnswerTimeout: cmp.Or(w.patience, time.Second)}
}

// scrape returns the member's own metrics, unless a test replaces them.
func (w *world) scrape(ctx context.Context, _, url string) (map[string]*dto.MetricFamily, error) {
	for pod, text := range w.pages {
		if w.clientURL(namespace, pod) == url {
			parser := expfmt.NewTextParser(model.LegacyValidation)
			return parser.TextToMetricFamilies(strings.NewReader(text))
		}
	}
	return scrape(ctx, nil, url)
}

// pass runs one reconcile of a newly started operator.
func (w *world) pass() {
	w.t.Helper()
	r := w.operator
	if w.dies {
		r = w.reconciler()
		r.Client = mortal(w.client)
	}
	_, err := r.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.hcp)})
	if err != nil && !errors.Is(err, errDied) {
		w.t.Log(err)
	}
	for pod := range w.members {
		w.released(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: component.ClaimName(pod)}})
	}
}

// mortal returns a client that fails after each change of an object, as if the operator stopped.
func mortal(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return errors.Join(c.Create(ctx, obj, opts...), errDied)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return errors.Join(c.Update(ctx, obj, opts...), errDied)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return errors.Join(c.Delete(ctx, obj, opts...), errDied)
		},
	})
}

func (w *world) dial(_ context.Context, _ string, urls []string) (Members, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: urls, DialTimeout: AnswerTimeout, Logger: zap.NewNop()})
	return &counting{Members: c, w: w}, err
}

func (w *world) condition(t hyperv1.ConditionType) string {
	hcp := &hyperv1.HostedControlPlane{}
	if err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(w.hcp), hcp); err != nil {
		return err.Error()
	}
	c := meta.FindStatusCondition(hcp.Status.Conditions, string(t))
	if c == nil {
		return "none"
	}
	return fmt.Sprintf("%s/%s: %s", c.Status, c.Reason, c.Message)
}

// goesOn runs the kubelet and the operator until the condition of the members has the expected value.
func (w *world) goesOn(wanted string) {
	w.t.Helper()
	NewWithT(w.t).Eventually(func() string {
		w.kubelet()
		w.pass()
		return w.condition(hyperv1.EtcdMembersHealthy)
	}, healing, 200*time.Millisecond).Should(HavePrefix(wanted))
}
