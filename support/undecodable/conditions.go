// SPDX-License-Identifier: Apache-2.0

package undecodable

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// attempts is the maximum number of attempts to write a condition. A later version of the object is tried again.
const attempts = 10

// Conditions sets a condition false on objects that cannot be decoded. It never sets one true: the controller of the
// kind owns the same condition, and computes it when it can decode the object again.
type Conditions struct {
	filter *Filter
	types  map[schema.GroupKind]string
	reader client.Reader
	writer client.StatusClient
	clock  clock.PassiveClock
	queue  workqueue.TypedRateLimitingInterface[location]
}

// location identifies an object in the API.
type location struct {
	schema.GroupVersionKind
	types.NamespacedName
}

// NewConditions returns Conditions for objects that a Filter finds. conditions has the type of the condition of each
// kind. reader must not be a cache.
func NewConditions(
	f *Filter, conditions map[schema.GroupKind]string, reader client.Reader, writer client.StatusClient,
) *Conditions {
	backoff := workqueue.NewTypedItemExponentialFailureRateLimiter[location](time.Second, time.Minute)
	c := &Conditions{
		filter: f, types: conditions, reader: reader, writer: writer, clock: clock.RealClock{},
		queue: workqueue.NewTypedRateLimitingQueue(backoff),
	}
	f.reports.mu.Lock()
	defer f.reports.mu.Unlock()
	f.reports.found = c.found
	return c
}

// found is called for each version of an object that cannot be decoded.
func (c *Conditions) found(o *object) {
	if c.types[o.GroupVersionKind().GroupKind()] != "" {
		c.queue.Add(location{o.GroupVersionKind(), o.key()})
	}
}

// Start writes conditions until the context ends. It implements manager.Runnable, so only the leader writes.
func (c *Conditions) Start(ctx context.Context) error {
	defer context.AfterFunc(ctx, c.queue.ShutDown)()
	for {
		at, ended := c.queue.Get()
		if ended {
			return nil
		}
		if err := c.write(ctx, at); err != nil && c.queue.NumRequeues(at) < attempts {
			c.queue.AddRateLimited(at)
		} else {
			c.queue.Forget(at)
			if err != nil {
				ctrl.Log.WithName("undecodable").Error(err, "Giving up on a condition")
			}
		}
		c.queue.Done(at)
	}
}

// write sets the condition of the object if it still cannot be decoded. It writes nothing if the object already has the
// condition.
func (c *Conditions) write(ctx context.Context, at location) error {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(at.GroupVersionKind)
	if err := c.reader.Get(ctx, at.NamespacedName, obj); err != nil {
		return client.IgnoreNotFound(err)
	}
	raw, err := obj.MarshalJSON()
	if err != nil {
		return fmt.Errorf("encoding %s %s: %w", at.Kind, at.NamespacedName, err)
	}
	before := obj.DeepCopy()
	if _, cause := c.filter.decode(raw); cause == nil || !c.set(obj, printable(cause.Error())) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.writer.Status().Patch(ctx, obj, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the condition of %s %s, which cannot be decoded: %w", at.Kind, at.NamespacedName, err)
	}
	return nil
}

// set sets the condition in an object and reports whether that changed it. A status without a list of conditions stays.
func (c *Conditions) set(obj *unstructured.Unstructured, cause string) bool {
	all, _, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
	if err != nil {
		return false
	}
	wanted := map[string]any{
		"type": c.types[obj.GroupVersionKind().GroupKind()], "status": string(metav1.ConditionFalse), "reason": Reason,
		"message": message(cause), "observedGeneration": obj.GetGeneration(),
		"lastTransitionTime": c.clock.Now().UTC().Format(time.RFC3339),
	}
	i := slices.IndexFunc(all, func(item any) bool {
		has, _ := item.(map[string]any)
		return has["type"] == wanted["type"]
	})
	if i < 0 {
		return unstructured.SetNestedSlice(obj.Object, append(all, wanted), "status", "conditions") == nil
	}
	has, _ := all[i].(map[string]any)
	if has["status"] == wanted["status"] {
		wanted["lastTransitionTime"] = has["lastTransitionTime"]
	}
	same := true
	for key, value := range wanted {
		same = same && has[key] == value
	}
	all[i] = wanted
	return !same && unstructured.SetNestedSlice(obj.Object, all, "status", "conditions") == nil
}
