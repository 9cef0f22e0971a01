// SPDX-License-Identifier: Apache-2.0

package reencryption

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubeapiserver"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/pause"
)

const (
	byPlugin = "resources: [{resources: [secrets], providers: [{kms: {name: vault, apiVersion: v2, endpoint: 'unix:///kms.sock'}}]}]"
	byKey    = "resources: [{resources: [secrets], providers: [{secretbox: {keys: [{name: key-1, secret: c2VjcmV0}]}}]}]"
)

var (
	noon       = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
	errServer  = errors.New("the server is dead")
	secretKind = schema.GroupResource{Resource: "secrets"}
)

// world is a hosted namespace with an encryption configuration, and a guest that lists its Secrets in pages.
type world struct {
	*GomegaWithT
	*Reconciler
	t     *testing.T
	hcp   *hyperv1.HostedControlPlane
	clock *clocktesting.FakePassiveClock
	// pages are the names of the guest's Secrets, and written lists the Secret of each rewrite.
	pages   [][]string
	written []string
	// refuses are the errors of writes, by Secret, and lists are the list requests so far.
	refuses map[string]error
	lists   []string
	// metrics are the metrics of the guest's API server, and asked counts their reads.
	metrics string
	asked   int
}

func newWorld(t *testing.T, config string, annotations map[string]string) *world {
	t.Helper()
	w := &world{GomegaWithT: NewWithT(t), t: t, hcp: fixture.ControlPlane(), clock: clocktesting.NewFakePassiveClock(noon),
		pages: [][]string{{"a", "b"}}, refuses: map[string]error{}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: kubeapiserver.EncryptionSecret, Annotations: annotations},
		Data: map[string][]byte{"config.yaml": []byte(config)}}
	builder := func() *fake.ClientBuilder {
		return fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithTypeConverters(managedfields.NewDeducedTypeConverter())
	}
	management := builder().WithObjects(w.hcp, secret).Build()
	w.Reconciler = &Reconciler{
		Guest:      interceptor.NewClient(builder().Build(), interceptor.Funcs{List: w.list, Patch: w.patch}),
		Management: management, Namespace: fixture.Namespace, Clock: w.clock,
		Pause: pause.Gate{Management: management, ControlPlane: client.ObjectKeyFromObject(w.hcp), Clock: w.clock},
		Metrics: func(context.Context) ([]byte, error) {
			w.asked++
			if w.metrics == "" {
				return nil, errServer
			}
			return []byte(w.metrics), nil
		},
	}
	return w
}

// list returns one page, and the number of the next page if there is one.
func (w *world) list(_ context.Context, _ client.WithWatch, into client.ObjectList, opts ...client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	w.lists = append(w.lists, fmt.Sprintf("%d from %q", o.Limit, o.Continue))
	list := into.(*metav1.PartialObjectMetadataList)
	w.Expect(list.GroupVersionKind()).To(Equal(corev1.SchemeGroupVersion.WithKind("SecretList")))
	page := 0
	if o.Continue != "" {
		_, _ = fmt.Sscan(o.Continue, &page)
	}
	if page >= len(w.pages) {
		return errServer
	}
	list.Items, list.Continue = nil, ""
	for _, name := range w.pages[page] {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}})
	}
	if page+1 < len(w.pages) {
		list.Continue = fmt.Sprint(page + 1)
	}
	return nil
}

func (w *world) patch(_ context.Context, _ client.WithWatch, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	data, err := patch.Data(obj)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(string(data)).To(Equal("{}"), "nothing of a Secret changes")
	w.Expect(obj.GetObjectKind().GroupVersionKind()).To(Equal(corev1.SchemeGroupVersion.WithKind("Secret")))
	w.written = append(w.written, obj.GetNamespace()+"/"+obj.GetName())
	return w.refuses[obj.GetName()]
}

func (w *world) pass() (ctrl.Result, error) {
	return w.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: fixture.Namespace, Name: kubeapiserver.EncryptionSecret}})
}

func (w *world) annotation(key string) string {
	w.t.Helper()
	secret := &corev1.Secret{}
	w.Expect(w.Management.Get(w.t.Context(), client.ObjectKey{Namespace: fixture.Namespace, Name: kubeapiserver.EncryptionSecret}, secret)).To(Succeed())
	return secret.Annotations[key]
}

// moving returns the annotations of a configuration whose fourth migration is at some stage.
func moving(stage hyperv1.EncryptionMigrationState, migrated string) map[string]string {
	return map[string]string{kubeapiserver.EncryptionStage: string(stage), kubeapiserver.EncryptionMove: "4", kubeapiserver.EncryptionMigrated: migrated}
}

func TestMigrate(t *testing.T) {
	migrating := moving(hyperv1.EncryptionMigrationMigrating, "3")

	t.Run("When a migration is pending, it should rewrite all Secrets page by page and then record the migration", func(t *testing.T) {
		w := newWorld(t, byKey, migrating)
		w.pages = [][]string{{"a", "b"}, {"c"}, {"d"}}
		w.Expect(w.pass()).To(Equal(ctrl.Result{}))
		w.Expect(w.written).To(Equal([]string{"shop/a", "shop/b", "shop/c", "shop/d"}))
		w.Expect(w.lists).To(Equal([]string{`500 from ""`, `500 from "1"`, `500 from "2"`}))
		w.Expect(w.annotation(kubeapiserver.EncryptionMigrated)).To(Equal("4"))
		w.Expect(w.asked).To(BeZero(), "no plugin has anything to do with it")

		w.written = nil
		w.Expect(w.pass()).To(Equal(ctrl.Result{}))
		w.Expect(w.written).To(BeEmpty(), "once a move")
	})

	for name, answer := range map[string]error{
		"is already deleted":      apierrors.NewNotFound(secretKind, "a"),
		"is written concurrently": apierrors.NewConflict(secretKind, "a", errServer),
	} {
		t.Run("When a Secret "+name+" it should still rewrite the others", func(t *testing.T) {
			w := newWorld(t, byKey, migrating)
			w.refuses["a"] = answer
			w.Expect(w.pass()).To(Equal(ctrl.Result{}))
			w.Expect(w.written).To(Equal([]string{"shop/a", "shop/b"}))
			w.Expect(w.annotation(kubeapiserver.EncryptionMigrated)).To(Equal("4"))
		})
	}

	t.Run("When a Secret cannot be written, it should name the Secret, and the next reconcile should start over", func(t *testing.T) {
		w := newWorld(t, byKey, migrating)
		w.refuses["b"] = apierrors.NewForbidden(secretKind, "b", errServer)
		_, err := w.pass()
		w.Expect(err).To(MatchError(ContainSubstring("rewriting Secret shop/b of the guest")))
		w.Expect(w.annotation(kubeapiserver.EncryptionMigrated)).To(Equal("3"))
		delete(w.refuses, "b")
		w.Expect(w.pass()).To(Equal(ctrl.Result{}))
		w.Expect(w.annotation(kubeapiserver.EncryptionMigrated)).To(Equal("4"))
	})

	t.Run("When the Secrets cannot be listed, it should return an error and not record the migration", func(t *testing.T) {
		w := newWorld(t, byKey, migrating)
		w.pages = nil
		_, err := w.pass()
		w.Expect(err).To(MatchError(ContainSubstring("listing the guest's Secrets")))
		w.Expect(w.annotation(kubeapiserver.EncryptionMigrated)).To(Equal("3"))
	})

	for name, annotations := range map[string]map[string]string{
		"none":                         nil,
		"at the stage ReadOnlyDeploy":  moving(hyperv1.EncryptionMigrationReadOnlyDeploy, "3"),
		"at the stage WritePromote":    moving(hyperv1.EncryptionMigrationWritePromote, "3"),
		"one that is already recorded": moving(hyperv1.EncryptionMigrationMigrating, "4"),
		"completed":                    moving(hyperv1.EncryptionMigrationCompleted, "4"),
	} {
		t.Run("When the migration is "+name+" it should write no Secret", func(t *testing.T) {
			w := newWorld(t, byKey, annotations)
			w.Expect(w.pass()).To(Equal(ctrl.Result{}))
			w.Expect(w.lists).To(BeEmpty())
		})
	}
}

// TestManagementIsDead checks that progress that cannot be recorded in the management cluster is not kept.
func TestManagementIsDead(t *testing.T) {
	fails := func(w *world, funcs interceptor.Funcs) error {
		w.Management = interceptor.NewClient(w.Management.(client.WithWatch), funcs)
		w.Pause.Management = w.Management
		_, err := w.pass()
		return err
	}
	noPatch := interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		return errServer
	}}
	noControlPlane := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		if _, ok := obj.(*hyperv1.HostedControlPlane); ok {
			return errServer
		}
		return c.Get(ctx, key, obj, opts...)
	}}
	t.Run("When the end of a migration cannot be recorded, it should return an error", func(t *testing.T) {
		w := newWorld(t, byKey, moving(hyperv1.EncryptionMigrationMigrating, "3"))
		w.Expect(fails(w, noPatch)).To(MatchError(errServer))
	})
	t.Run("When the plugin's key cannot be recorded, it should return an error", func(t *testing.T) {
		w := newWorld(t, byPlugin, moving(hyperv1.EncryptionMigrationCompleted, "4"))
		w.metrics = keyLine("vault", "new", 2)
		w.Expect(w.pass()).To(Equal(ctrl.Result{RequeueAfter: keySettles}))
		w.clock.SetTime(noon.Add(keySettles))
		w.Expect(fails(w, noPatch)).To(MatchError(errServer))
	})
	t.Run("When the HostedControlPlane cannot be read, it should not write any Secret", func(t *testing.T) {
		w := newWorld(t, byKey, moving(hyperv1.EncryptionMigrationMigrating, "3"))
		w.Expect(fails(w, noControlPlane)).To(MatchError(errServer))
		w.Expect(w.lists).To(BeEmpty())
	})
}

// TestPaused checks that a paused controller requeues by time, neither too often nor too late, since no watch reports
// the end of a pause.
func TestPaused(t *testing.T) {
	for until, want := range map[string]time.Duration{
		"true": pausedRetry, "2026-11-20T12:00:10Z": pausedRetry, "2026-11-20T12:30:00Z": 30 * time.Minute,
	} {
		t.Run("When the cluster is paused until "+until+" it should write no Secret and requeue", func(t *testing.T) {
			w := newWorld(t, byKey, moving(hyperv1.EncryptionMigrationMigrating, ""))
			w.hcp.Spec.PausedUntil = ptr.To(until)
			w.Expect(w.Management.Update(t.Context(), w.hcp)).To(Succeed())
			w.Expect(w.pass()).To(Equal(ctrl.Result{RequeueAfter: want}))
			w.Expect(w.lists).To(BeEmpty())
		})
	}
}

func keyLine(plugin, id string, at float64) string {
	return fmt.Sprintf("%s{apiserver_id_hash=\"sha256:1\",key_id_hash=%q,provider_name=%q,transformation_type=\"to_storage\"} %g\n", keyMetric, id, plugin, at)
}

// TestFollow follows a plugin that switches to a new key. All API servers must use that key before anything is
// rewritten.
func TestFollow(t *testing.T) {
	over := func(id string) map[string]string {
		annotations := moving(hyperv1.EncryptionMigrationCompleted, "4")
		annotations[kubeapiserver.EncryptionKeyID] = id
		return annotations
	}
	again := ctrl.Result{RequeueAfter: keyPoll}

	t.Run("When the plugin switches keys, it should rewrite Secrets once after all API servers use the new key", func(t *testing.T) {
		w := newWorld(t, byPlugin, over("old"))
		w.metrics = keyLine("vault", "old", 1)
		w.Expect(w.pass()).To(Equal(again))
		w.metrics = keyLine("vault", "old", 1) + keyLine("vault", "new", 2)
		w.Expect(w.pass()).To(Equal(ctrl.Result{RequeueAfter: keySettles}))
		w.clock.SetTime(noon.Add(keySettles - time.Second))
		w.Expect(w.pass()).To(Equal(ctrl.Result{RequeueAfter: time.Second}))
		w.Expect(w.written).To(BeEmpty())
		w.clock.SetTime(noon.Add(keySettles))
		w.Expect(w.pass()).To(Equal(again))
		w.Expect(w.written).To(Equal([]string{"shop/a", "shop/b"}))
		w.Expect(w.annotation(kubeapiserver.EncryptionKeyID)).To(Equal("new"))
		w.Expect(w.annotation(kubeapiserver.EncryptionMigrated)).To(Equal("4"), "it is no move")
		w.Expect(w.pass()).To(Equal(again))
		w.Expect(w.written).To(HaveLen(2))
	})

	t.Run("When the plugin switches to a third key before that, it should restart the wait", func(t *testing.T) {
		w := newWorld(t, byPlugin, over("old"))
		w.metrics = keyLine("vault", "new", 2)
		w.Expect(w.pass()).To(Equal(ctrl.Result{RequeueAfter: keySettles}))
		w.clock.SetTime(noon.Add(keySettles))
		w.metrics += keyLine("vault", "newer", 3)
		w.Expect(w.pass()).To(Equal(ctrl.Result{RequeueAfter: keySettles}))
		w.Expect(w.written).To(BeEmpty())
	})

	t.Run("When the plugin switches back to the previous key, it should rewrite nothing", func(t *testing.T) {
		w := newWorld(t, byPlugin, over("old"))
		w.metrics = keyLine("vault", "new", 2)
		w.Expect(w.pass()).To(Equal(ctrl.Result{RequeueAfter: keySettles}))
		w.clock.SetTime(noon.Add(keySettles))
		w.metrics += keyLine("vault", "old", 3)
		w.Expect(w.pass()).To(Equal(again))
		w.Expect(w.written).To(BeEmpty())
	})

	t.Run("When a Secret cannot be written, the recorded key should stay the previous one", func(t *testing.T) {
		w := newWorld(t, byPlugin, over("old"))
		w.metrics = keyLine("vault", "new", 2)
		w.Expect(w.pass()).To(Equal(ctrl.Result{RequeueAfter: keySettles}))
		w.clock.SetTime(noon.Add(time.Hour))
		w.refuses["b"] = errServer
		_, err := w.pass()
		w.Expect(err).To(MatchError(errServer))
		w.Expect(w.annotation(kubeapiserver.EncryptionKeyID)).To(Equal("old"))
	})

	t.Run("When the API server's metrics cannot be read, it should return an error", func(t *testing.T) {
		w := newWorld(t, byPlugin, over("old"))
		_, err := w.pass()
		w.Expect(err).To(MatchError(ContainSubstring("asking the API server for the key of its plugin")))
	})

	t.Run("When the API server reports no key of the plugin, it should requeue", func(t *testing.T) {
		w := newWorld(t, byPlugin, over("old"))
		w.metrics = keyLine("another", "new", 2)
		w.Expect(w.pass()).To(Equal(again))
		w.Expect(w.lists).To(BeEmpty())
	})

	t.Run("When the key is in a Secret, it should not query any API server", func(t *testing.T) {
		for _, config := range []string{byKey, "no: yaml: at all", ""} {
			w := newWorld(t, config, over("old"))
			w.Expect(w.pass()).To(Equal(ctrl.Result{}))
			w.Expect(w.asked).To(BeZero())
		}
	})
}

func TestCurrentKey(t *testing.T) {
	for name, tc := range map[string]struct{ metrics, want string }{
		"nothing":                     {"", ""},
		"the keys of two plugins":     {keyLine("other", "b", 9) + keyLine("vault", "a", 1), "a"},
		"the latest key first":        {keyLine("vault", "a", 1.7e9) + keyLine("vault", "b", 1.6e9), "a"},
		"the latest key last":         {keyLine("vault", "a", 1.6e9) + keyLine("vault", "b", 1.7e9), "b"},
		"comments and other metrics":  {"# HELP " + keyMetric + " text\n" + keyMetric + "_total{provider_name=\"vault\",key_id_hash=\"x\"} 5\n" + keyLine("vault", "a", 1), "a"},
		"a time that is not a number": {keyMetric + "{key_id_hash=\"x\",provider_name=\"vault\"} soon\n" + keyLine("vault", "a", 1), "a"},
		"a truncated line":            {keyLine("vault", "a", 1) + keyMetric + "{key_id_hash=\"x\",provider_na", "a"},
		"no time":                     {keyMetric + "{key_id_hash=\"x\",provider_name=\"vault\"}", ""},
		"a line of 128 KiB":           {"# " + strings.Repeat("x", 1<<17) + "\n" + keyLine("vault", "a", 1), "a"},
		"labels in another order":     {keyMetric + "{provider_name=\"vault\",key_id_hash=\"x\"} 1", "x"},
	} {
		t.Run("When metrics hold "+name+" it should return the plugin's latest key", func(t *testing.T) {
			NewWithT(t).Expect(currentKey([]byte(tc.metrics), "vault")).To(Equal(tc.want))
		})
	}
}
