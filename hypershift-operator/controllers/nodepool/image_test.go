// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/platform/none"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/phase"
)

// keeper is a platform that stores an image for the pool of a given name.
type keeper struct {
	none.Platform
	kept platform.Kept
	left string
	err  error
	of   *hyperv1.NodePool
}

func (k *keeper) KeepImage(_ context.Context, _ client.Client, pool platform.Pool) (platform.Kept, error) {
	k.of = pool.NodePool
	return k.kept, k.err
}

func (k *keeper) DropImage(_ context.Context, _ client.Client, pool platform.Pool) (string, error) {
	k.of = pool.NodePool
	return k.left, k.err
}

func TestKeepImage(t *testing.T) {
	kind := hyperv1.NodePoolValidPlatformImageType
	t.Run("When the platform caches no image, it should report nothing", func(t *testing.T) {
		g, s := NewWithT(t), pass()
		s.Platform = none.Platform{}
		result, err := on(nil).keepImage(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result).To(Equal(ctrl.Result{}))
		g.Expect(s.Kept).To(BeNil())
		g.Expect(s.Conditions).To(BeEmpty())
	})
	t.Run("When the platform caches an image, it should report it and pass it to later phases", func(t *testing.T) {
		g, s := NewWithT(t), pass()
		status := &hyperv1.NodePoolPlatformStatus{}
		plugin := &keeper{kept: platform.Kept{Condition: condition.True(kind, "Kept", "it is there"), Status: status, CheckAgain: time.Minute}}
		s.Platform = plugin
		result, err := on(nil).keepImage(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(plugin.of).To(BeIdenticalTo(s.Pool))
		g.Expect(result).To(Equal(ctrl.Result{RequeueAfter: time.Minute}))
		g.Expect(s.says(kind)).To(Equal("True/Kept: it is there"))
		g.Expect(s.Kept).To(HaveValue(Equal(plugin.kept)))
		g.Expect(s.View().Kept).To(BeIdenticalTo(status))
	})
	t.Run("When caching the image fails, it should block new machines and keep the previous status", func(t *testing.T) {
		g, s := NewWithT(t), pass()
		s.Pool.Status.Platform = &hyperv1.NodePoolPlatformStatus{}
		s.Platform = &keeper{err: errRefused}
		_, err := on(nil).keepImage(t.Context(), s)
		g.Expect(err).To(MatchError(errRefused))
		g.Expect(s.Kept.Missing).To(BeTrue())
		g.Expect(s.View().Kept).To(BeIdenticalTo(s.Pool.Status.Platform))
		g.Expect(s.says(kind)).To(Equal("Unknown/ReconciliationError: " + errRefused.Error()))
	})
}

func TestDropImage(t *testing.T) {
	failed := errors.New("failed")
	for name, test := range map[string]struct {
		plugin platform.Platform
		after  time.Duration
		err    error
		says   string
	}{
		"the platform caches no image, it should not wait":        {none.Platform{}, 0, nil, ""},
		"the image is deleted, it should not wait":                {&keeper{}, 0, nil, ""},
		"the image still exists, it should wait and report it":    {&keeper{left: "a volume is left"}, deletionPoll, phase.ErrStop, "False/Deleting: a volume is left"},
		"the image cannot be deleted, it should return the error": {&keeper{left: "a volume is left", err: failed}, 0, failed, ""},
	} {
		t.Run("When "+name, func(t *testing.T) {
			g, s := NewWithT(t), pass()
			s.Platform = test.plugin
			result, err := on(nil).dropImage(t.Context(), s)
			if test.err == nil {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(test.err))
			}
			g.Expect(result.RequeueAfter).To(Equal(test.after))
			g.Expect(s.says(hyperv1.NodePoolReadyConditionType)).To(Equal(test.says))
			if k, is := test.plugin.(*keeper); is {
				g.Expect(k.of).To(BeIdenticalTo(s.Pool))
			}
		})
	}
}
