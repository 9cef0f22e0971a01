// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/cmd/kube"
)

// Create creates the object. It repeats an attempt that the server may or may not have carried out. If the object
// exists then, with all fields that were sent, an earlier attempt created it.
func Create(ctx context.Context, c client.Client, obj client.Object) error {
	sent, err := ToUnstructured(obj)
	if err != nil {
		return err
	}
	for retry := 0; ; retry++ {
		err := c.Create(ctx, obj)
		if retry > 0 && apierrors.IsAlreadyExists(err) {
			return created(ctx, c, obj, sent.Object, err)
		}
		if retry == kube.Retries || !unknown(err) || kube.Pause(ctx, retry) != nil {
			return err
		}
	}
}

// created reads the existing object. It returns the error if that is not the one that was sent.
func created(ctx context.Context, c client.Client, obj client.Object, sent map[string]any, exists error) error {
	found := obj.DeepCopyObject().(client.Object)
	if err := c.Get(ctx, client.ObjectKeyFromObject(obj), found); err != nil {
		return errors.Join(exists, err)
	}
	has, err := ToUnstructured(found)
	if err != nil {
		return err
	}
	if !contains(has.Object, sent) {
		return exists
	}
	return nil
}

// contains reports whether a value has all fields of another one. The server adds defaults.
func contains(has, sent any) bool {
	fields, ok := sent.(map[string]any)
	if !ok {
		return equality.Semantic.DeepEqual(has, sent)
	}
	all, _ := has.(map[string]any)
	for name, value := range fields {
		if !contains(all[name], value) {
			return false
		}
	}
	return true
}

// unknown reports whether a request may have been carried out although it failed.
func unknown(err error) bool {
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return status.ErrStatus.Code >= http.StatusInternalServerError
	}
	return kube.ConnectionLost(err)
}
