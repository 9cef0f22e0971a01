package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/openshift/hypershift/hypershift-operator/platform/registry"
)

const initPoll = 2 * time.Second

// coreCRDs are the kinds that the controllers watch, whatever platforms there are.
var coreCRDs = []string{
	"hostedclusters.hypershift.openshift.io", "nodepools.hypershift.openshift.io", "hostedcontrolplanes.hypershift.openshift.io",
	"clusters.cluster.x-k8s.io", "machines.cluster.x-k8s.io", "machinesets.cluster.x-k8s.io", "machinedeployments.cluster.x-k8s.io",
	"machinehealthchecks.cluster.x-k8s.io",
}

// requiredCRDs are coreCRDs and what the plugins of platforms watch beside.
func requiredCRDs(scheme *runtime.Scheme, platforms registry.Registry) ([]string, error) {
	required := slices.Clone(coreCRDs)
	for _, kind := range platforms.Watched() {
		gvk, err := apiutil.GVKForObject(kind, scheme)
		if err != nil {
			return nil, fmt.Errorf("naming the CRD of %T: %w", kind, err)
		}
		if gvk.Group == corev1.GroupName {
			continue
		}
		required = append(required, strings.ToLower(gvk.Kind)+"s."+gvk.Group)
	}
	return required, nil
}

func newInitCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Wait until the management cluster serves the kinds that the operator needs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := ctrl.GetConfig()
			if err != nil {
				return fmt.Errorf("finding the management cluster: %w", err)
			}
			scheme, err := newScheme()
			if err != nil {
				return err
			}
			c, err := client.New(config, client.Options{Scheme: scheme})
			if err != nil {
				return fmt.Errorf("connecting to the management cluster: %w", err)
			}
			required, err := requiredCRDs(scheme, installedPlatforms("", nil, nil))
			if err != nil {
				return err
			}
			return waitForCRDs(cmd.Context(), c, required, timeout)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long to wait")
	return cmd
}

// waitForCRDs waits until every required kind is served.
func waitForCRDs(ctx context.Context, c client.Reader, required []string, timeout time.Duration) error {
	var missing []string
	err := wait.PollUntilContextTimeout(ctx, initPoll, timeout, true, func(ctx context.Context) (bool, error) {
		var err error
		missing, err = missingCRDs(ctx, c, required)
		return err == nil && len(missing) == 0, nil
	})
	if err != nil && len(missing) > 0 {
		return fmt.Errorf("the management cluster lacks the CRDs %s: run `hypershift install` again", strings.Join(missing, ", "))
	}
	if err != nil {
		return errors.New("the CRDs of the management cluster could not be read: check the rights of the operator's service account")
	}
	return nil
}

func missingCRDs(ctx context.Context, c client.Reader, required []string) ([]string, error) {
	var missing []string
	for _, name := range required {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := c.Get(ctx, client.ObjectKey{Name: name}, crd)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading CRD %s: %w", name, err)
		}
		if apierrors.IsNotFound(err) || !established(crd) {
			missing = append(missing, name)
		}
	}
	return missing, nil
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}
