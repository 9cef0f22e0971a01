// SPDX-License-Identifier: Apache-2.0

package phase_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/pause"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/testenv"
)

const (
	ours   = "test.hypershift/ours"
	former = "test.hypershift/former"
)

var errBroken = errors.New("broken")

// controller reconciles ConfigMaps and records its actions, in order.
type controller struct {
	client client.Client
	// state, observed, failing and stopping are the inputs of the reconcile.
	state             pause.State
	observed          error
	failing, stopping string
	resync            time.Duration
	// finalized reports whether the finalizer was set when the first phase ran; failure is the reported failure.
	finalized bool
	failure   error
	did       []string
}

func (c *controller) step(name string, whilePaused bool) phase.Phase[*corev1.ConfigMap] {
	return phase.Phase[*corev1.ConfigMap]{Name: name, WhilePaused: whilePaused, Run: func(ctx context.Context, obj *corev1.ConfigMap) (ctrl.Result, error) {
		c.did = append(c.did, name)
		live := &corev1.ConfigMap{}
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(obj), live); err != nil {
			return ctrl.Result{}, err
		}
		c.finalized = slices.Contains(live.Finalizers, ours) && live.Data["prepared"] == "yes"
		switch name {
		case c.failing:
			return ctrl.Result{RequeueAfter: time.Minute}, errBroken
		case c.stopping:
			return ctrl.Result{RequeueAfter: time.Minute}, phase.ErrStop
		}
		return phase.Done()
	}}
}

func (c *controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return phase.Driver[*corev1.ConfigMap, *corev1.ConfigMap]{
		Client: c.client, Finalizers: []string{ours, former},
		Observe: func(_ context.Context, obj *corev1.ConfigMap) (*corev1.ConfigMap, error) { return obj, c.observed },
		Pause:   func(context.Context, *corev1.ConfigMap) (pause.State, error) { return c.state, nil },
		Prepare: func(obj *corev1.ConfigMap) error { obj.Data = map[string]string{"prepared": "yes"}; return nil },
		Phases: func(*corev1.ConfigMap) []phase.Phase[*corev1.ConfigMap] {
			return []phase.Phase[*corev1.ConfigMap]{c.step("first", false), c.step("second", true)}
		},
		Deletion: func(*corev1.ConfigMap) []phase.Phase[*corev1.ConfigMap] {
			return []phase.Phase[*corev1.ConfigMap]{c.step("take apart", false)}
		},
		Report: func(_ context.Context, _ *corev1.ConfigMap, failure error) error {
			c.did, c.failure = append(c.did, "report"), failure
			return nil
		},
		Resync: func(*corev1.ConfigMap) time.Duration { return c.resync },
	}.Reconcile(ctx, req)
}

func TestDriver(t *testing.T) {
	c, err := client.New(testenv.Start(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		// finalizers are on the object at first, and left at the end. If none is left on a deleted object, the object is
		// gone.
		finalizers, left []string
		deleted          bool
		controller       controller
		did              []string
		after            time.Duration
		failure          string
	}{
		{name: "When an object is new, it should get its finalizer and be prepared before the phases, and report once",
			did: []string{"first", "second", "report"}, left: []string{ours}},
		{name: "When a phase fails, it should run the others, report once, and leave the retry to the rate limiter",
			controller: controller{failing: "first"}, did: []string{"first", "second", "report"}, left: []string{ours}, failure: "first: broken"},
		{name: "When a phase stops the reconcile, it should report and requeue after the delay of the phase",
			controller: controller{stopping: "first"}, did: []string{"first", "report"}, left: []string{ours}, after: time.Minute},
		{name: "When the controller resyncs earlier than a phase asks for, it should requeue after the resync period",
			controller: controller{stopping: "first", resync: time.Second}, did: []string{"first", "report"}, left: []string{ours}, after: time.Second},
		{name: "When an object is paused, it should run only the phases for that and requeue at the end of the pause",
			controller: controller{state: pause.State{Paused: true, For: time.Hour}, resync: time.Minute}, did: []string{"second", "report"}, left: []string{ours}, after: time.Hour},
		{name: "When an object is frozen, it should report and add no finalizer",
			controller: controller{state: pause.State{Frozen: true}}, did: []string{"report"}},
		{name: "When Observe stops the reconcile, it should do nothing",
			controller: controller{observed: phase.ErrStop}},
		{name: "When an object is deleted, it should run the deletion, remove all its finalizers and not report",
			finalizers: []string{ours, former}, deleted: true, did: []string{"take apart"}},
		{name: "When an object is deleted while paused, it should still run the deletion",
			finalizers: []string{ours}, deleted: true, controller: controller{state: pause.State{Paused: true, For: time.Hour}}, did: []string{"take apart"}},
		{name: "When an object is deleted while frozen, it should report and change nothing",
			finalizers: []string{ours}, deleted: true, controller: controller{state: pause.State{Frozen: true}}, did: []string{"report"}, left: []string{ours}},
		{name: "When a deletion is waiting, it should keep the finalizer and report",
			finalizers: []string{ours}, deleted: true, controller: controller{stopping: "take apart"}, did: []string{"take apart", "report"}, left: []string{ours}, after: time.Minute},
		{name: "When a deletion fails, it should keep the finalizer and report",
			finalizers: []string{ours}, deleted: true, controller: controller{failing: "take apart"}, did: []string{"take apart", "report"}, left: []string{ours}, failure: "take apart: broken"},
		{name: "When an object is deleted without our finalizer, it should remove only its related finalizers",
			finalizers: []string{former, "test.hypershift/others"}, deleted: true, left: []string{"test.hypershift/others"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, ctx := NewWithT(t), t.Context()
			obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "driven-", Namespace: "default", Finalizers: tc.finalizers}}
			g.Expect(c.Create(ctx, obj)).To(Succeed())
			if tc.deleted {
				g.Expect(c.Delete(ctx, obj)).To(Succeed())
			}
			r := &tc.controller
			r.client = c
			result, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(obj)})

			g.Expect(r.did).To(Equal(tc.did))
			g.Expect(result.RequeueAfter).To(Equal(tc.after))
			if tc.failure == "" {
				g.Expect(errors.Join(err, r.failure)).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(tc.failure))
				g.Expect(r.failure).To(MatchError(tc.failure))
			}
			if slices.Contains(tc.did, "first") {
				g.Expect(r.finalized).To(BeTrue(), "the finalizer and what prepare made came before the phases")
			}
			err = c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
			g.Expect(apierrors.IsNotFound(err)).To(Equal(tc.deleted && len(tc.left) == 0), "%v", err)
			if err == nil {
				g.Expect(obj.Finalizers).To(Equal(tc.left))
			}
		})
	}
	t.Run("When the object is gone, it should do nothing", func(t *testing.T) {
		g, r := NewWithT(t), &controller{client: c}
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "gone"}})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.IsZero()).To(BeTrue())
		g.Expect(r.did).To(BeEmpty())
	})
}
