// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/finalizer"
)

// Issuer publishes the issuer of the guest's service account tokens to the platform's cloud. It adds the finalizer
// first, so that the published documents are always removed later.
type Issuer struct {
	Client        client.Client
	OperatorImage string
}

// Reconcile publishes the documents.
func (r Issuer) Reconcile(ctx context.Context, s *cluster.Scope) (ctrl.Result, error) {
	publisher, ok := s.Platform.(platform.IssuerPublisher)
	if !ok {
		return ctrl.Result{}, nil
	}
	seen := s.ForPlatform(r.OperatorImage)
	documents, why, err := publisher.IssuerDocuments(ctx, r.Client, seen)
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(documents) == 0 {
		if why.Type == "" {
			s.Clear(hyperv1.ValidOIDCConfiguration)
		} else {
			s.SetCondition(why)
		}
		return ctrl.Result{}, nil
	}
	if err := finalizer.Add(ctx, r.Client, s.HC, publisher.IssuerFinalizer(), nil); err != nil {
		return ctrl.Result{}, err
	}
	how, again := publisher.PublishIssuer(ctx, seen, documents)
	s.SetCondition(how)
	return ctrl.Result{RequeueAfter: again}, nil
}

// Withdraw removes the published issuer after every possible user of the guest's service account tokens is gone.
func (r Issuer) Withdraw(ctx context.Context, s *cluster.Scope) (string, error) {
	publisher, ok := s.Platform.(platform.IssuerPublisher)
	if !ok || !controllerutil.ContainsFinalizer(s.HC, publisher.IssuerFinalizer()) {
		return "", nil
	}
	if err := publisher.WithdrawIssuer(ctx, s.ForPlatform(r.OperatorImage)); err != nil {
		return "", err
	}
	return "", finalizer.Remove(ctx, r.Client, s.HC, publisher.IssuerFinalizer())
}
