// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/objects"
	"github.com/openshift/hypershift/cmd/progress"
	"github.com/openshift/hypershift/support/operatorwebhook"
)

// FieldOwner is the field owner of server-side apply in install.
const FieldOwner = "hypershift"

const (
	waitTimeout  = 5 * time.Minute
	waitInterval = time.Second
)

// install holds the state of one `install`.
type install struct {
	Options
	connection       kube.Connection
	waitEstablished  bool
	waitForAvailable bool
	dryRun           bool
	// written counts what the installation wrote.
	written written
}

// NewCommand returns the commands `install` and `install render`. parts creates the install parts of the platforms,
// once for each command.
func NewCommand(parts func() []Part) *cobra.Command {
	i := &install{Options: Options{parts: parts()}}
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install the operator and its CRDs in the management cluster",
		Example: "  hypershift install --hypershift-image registry.example.com/hypershift:0.2.0 \\\n" +
			"    --default-release-image registry.example.com/release:1.36.3\n" +
			"  # Show what would change\n" +
			"  hypershift install --hypershift-image registry.example.com/hypershift:0.2.0 --dry-run",
		Args: cobra.NoArgs,
		RunE: i.run,
	}
	i.Options.addFlags(cmd.Flags())
	cmd.Flags().BoolVar(&i.waitForAvailable, "wait-until-available", false, "wait until the operator is available, at most 5 minutes")
	cmd.Flags().BoolVar(&i.waitEstablished, "wait-until-crds-established", false, "wait until the CRDs are served, at most 5 minutes")
	cmd.Flags().BoolVar(&i.dryRun, "dry-run", false, "print what would change, and change nothing")
	i.connection.AddFlags(cmd.Flags())
	cmd.AddCommand(newRenderCommand(parts()))
	return cmd
}

func (i *install) run(cmd *cobra.Command, _ []string) error {
	if err := i.complete(cmd.Flags()); err != nil {
		return exit.UsageError(err)
	}
	if i.waitForAvailable && (i.scope == scopeCRDs || i.development) {
		return exit.UsageError(errors.New("--wait-until-available waits for the operator, which --install-scope crds and --development leave out"))
	}
	warn(cmd.ErrOrStderr(), cmd.Flags())
	c, err := i.connection.Client()
	if err != nil {
		return err
	}
	if err := i.discover(cmd.Context(), c, cmd.Flags().Changed(apisFlag)); err != nil {
		return err
	}
	if err := i.checkMonitoring(); err != nil {
		return err
	}
	if err := i.checkVirtualIP(cmd.Context(), c, cmd.Flags().Changed(virtualIPFlag)); err != nil {
		return err
	}
	before, err := i.checkInstalled(cmd.Context(), c)
	if err != nil {
		return err
	}
	if i.dryRun {
		return i.plan(cmd.Context(), c, cmd.OutOrStdout())
	}
	report := progress.New(cmd.ErrOrStderr(), clock.RealClock{})
	if err := i.install(cmd.Context(), c, report); err != nil {
		return i.written.incomplete(err)
	}
	i.written.report(report, before)
	if !i.waitForAvailable {
		return nil
	}
	return i.waitAvailable(cmd.Context(), c, report)
}

func warn(stderr io.Writer, flags *pflag.FlagSet) {
	for _, name := range withoutEffect {
		if flags.Changed(name) {
			fmt.Fprintf(stderr, "Warning: --%s has no effect\n", name)
		}
	}
}

func (i *install) install(ctx context.Context, c client.Client, report *progress.Reporter) error {
	if i.scope != scopeResources {
		if err := i.installCRDs(ctx, c, report); err != nil {
			return err
		}
	}
	if i.scope == scopeCRDs {
		return nil
	}
	for _, obj := range i.resources() {
		if err := i.written.applyResource(ctx, c, obj); err != nil {
			return err
		}
		report.Printf("%s applied", objects.Describe(obj))
	}
	return errors.Join(i.dropWebhook(ctx, c), i.dropMonitors(ctx, c), i.dropAlerting(ctx, c), i.dropVirtualIP(ctx, c))
}

// dropWebhook removes the webhook of an earlier installation if no pod serves it any more.
func (i *install) dropWebhook(ctx context.Context, c client.Client) error {
	if i.servesWebhook() {
		return nil
	}
	left := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: operatorwebhook.Name}}
	if err := c.Delete(ctx, left); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s: %w", objects.Describe(left), err)
	}
	return nil
}

// installCRDs has the server validate all CRDs before it changes the first.
func (i *install) installCRDs(ctx context.Context, c client.Client, report *progress.Reporter) error {
	wanted, err := i.definitions()
	if err != nil {
		return err
	}
	others, err := foreign(ctx, c, wanted)
	if err != nil {
		return err
	}
	own := slices.DeleteFunc(slices.Clone(wanted), func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		return others[crd.Name]
	})
	for _, crd := range own {
		if err := objects.Apply(ctx, c, FieldOwner, crd, true); err != nil {
			return err
		}
	}
	for _, crd := range own {
		if err := i.written.apply(ctx, c, crd); err != nil {
			return err
		}
	}
	for name := range others {
		if err := dropLabel(ctx, c, name); err != nil {
			return err
		}
		report.Printf("CRD %s belongs to another product and is left as it is", name)
	}
	report.Printf("%d CRDs applied", len(own))
	// The operator's init container also waits for the CRDs.
	if !i.waitEstablished && !i.waitForAvailable {
		return nil
	}
	return report.Wait(ctx, "the CRDs", waitTimeout, waitInterval, func(ctx context.Context) (progress.State, error) {
		return lookCRDs(ctx, c, wanted)
	})
}

func lookCRDs(ctx context.Context, c client.Client, wanted []*apiextensionsv1.CustomResourceDefinition) (progress.State, error) {
	var missing []string
	for _, crd := range wanted {
		existing := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(crd), existing); err != nil {
			return progress.State{}, fmt.Errorf("read CRD %s: %w", crd.Name, err)
		}
		if !established(existing) {
			missing = append(missing, crd.Name)
		}
	}
	if len(missing) > 0 {
		return progress.State{Message: "waiting for CRDs " + strings.Join(missing, ", ")}, nil
	}
	return progress.State{Done: true, Message: "the CRDs are served"}, nil
}

func (i *install) waitAvailable(ctx context.Context, c client.Client, report *progress.Reporter) error {
	key := client.ObjectKey{Namespace: i.namespace, Name: operatorName}
	return report.Wait(ctx, "the operator", waitTimeout, waitInterval, func(ctx context.Context) (progress.State, error) {
		deployment := &appsv1.Deployment{}
		if err := c.Get(ctx, key, deployment); err != nil {
			return progress.State{}, fmt.Errorf("read Deployment %s: %w", key, err)
		}
		if available(deployment) {
			return progress.State{Done: true, Message: "the operator is available"}, nil
		}
		var pods corev1.PodList
		if err := c.List(ctx, &pods, client.InNamespace(i.namespace), client.MatchingLabels{"name": operatorName}); err != nil {
			return progress.State{}, fmt.Errorf("list the operator's pods: %w", err)
		}
		return progress.State{Message: "waiting for the operator: " + podProblem(pods.Items)}, nil
	})
}

func available(d *appsv1.Deployment) bool {
	want := ptr.Deref(d.Spec.Replicas, 1)
	return d.Status.ObservedGeneration >= d.Generation && d.Status.UpdatedReplicas == want && d.Status.AvailableReplicas == want
}

// podProblem describes why the newest pod does not run.
func podProblem(pods []corev1.Pod) string {
	var newest *corev1.Pod
	for i := range pods {
		if newest == nil || newest.CreationTimestamp.Before(&pods[i].CreationTimestamp) {
			newest = &pods[i]
		}
	}
	if newest == nil {
		return "it has no pod yet"
	}
	for _, status := range append(newest.Status.InitContainerStatuses, newest.Status.ContainerStatuses...) {
		if waiting := status.State.Waiting; waiting != nil && waiting.Reason != "PodInitializing" {
			text := fmt.Sprintf("container %s of pod %s: %s", status.Name, newest.Name, waiting.Reason)
			if last := status.LastTerminationState.Terminated; last != nil {
				return fmt.Sprintf("%s; it ended with exit code %d: %s", text, last.ExitCode, strings.TrimSpace(last.Message))
			}
			return strings.TrimSuffix(text+": "+waiting.Message, ": ")
		}
	}
	for _, condition := range newest.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return fmt.Sprintf("pod %s cannot be scheduled: %s", newest.Name, condition.Message)
		}
	}
	return fmt.Sprintf("pod %s is %s", newest.Name, newest.Status.Phase)
}
