// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/confirm"
	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/look"
	"github.com/openshift/hypershift/cmd/progress"
)

// destroy holds the state of one `destroy cluster`.
type destroy struct {
	connection     kube.Connection
	platform       hyperv1.PlatformType
	name           string
	namespace      string
	infraID        string
	gracePeriod    time.Duration
	cloudResources bool
	yes            bool
}

// NewDestroyCommand returns the command `destroy cluster <platform>`.
func NewDestroyCommand(platform hyperv1.PlatformType) *cobra.Command {
	d := &destroy{platform: platform}
	cmd := &cobra.Command{
		Use:   strings.ToLower(string(platform)),
		Short: "Destroy a hosted cluster of platform " + string(platform) + " and release its machines",
		Long: "Destroy a hosted cluster, with its NodePools and all data of its control plane, and release its machines. On a " +
			"terminal, the command shows what it destroys, and asks for the name of the cluster.",
		Example: "  hypershift destroy cluster " + strings.ToLower(string(platform)) + " --name demo",
		Args:    cobra.NoArgs,
		RunE:    d.run,
	}
	flags := cmd.Flags()
	flags.StringVar(&d.name, "name", "", "name of the cluster (required)")
	flags.StringVar(&d.namespace, "namespace", "clusters", "namespace of the cluster")
	flags.StringVar(&d.infraID, "infra-id", "", "infrastructure id of the cluster (default: read from the HostedCluster)")
	flags.DurationVar(&d.gracePeriod, "cluster-grace-period", 10*time.Minute, "longest wait until the cluster is gone")
	flags.BoolVar(&d.cloudResources, "destroy-cloud-resources", true, "also remove what the guest cluster made outside of itself, such as load balancers")
	confirm.AddFlag(flags, &d.yes)
	d.connection.AddFlags(flags)
	_ = cmd.RegisterFlagCompletionFunc("name", look.CompleteClustersOf(&d.connection, &d.namespace))
	return cmd
}

func (d *destroy) run(cmd *cobra.Command, _ []string) error {
	if d.name == "" {
		return exit.UsageError(errors.New("--name is required"))
	}
	c, err := d.connection.Client()
	if err != nil {
		return err
	}
	if !d.yes && confirm.Terminal(cmd) {
		if err := d.ask(cmd, c); err != nil {
			return err
		}
	}
	return d.destroy(cmd.Context(), c, progress.New(cmd.ErrOrStderr(), clock.RealClock{}))
}

// ask shows what the command destroys, and asks for the name of the cluster. It asks nothing if there is no cluster.
func (d *destroy) ask(cmd *cobra.Command, c client.Client) error {
	reader, key := look.New(c, nil), client.ObjectKey{Namespace: d.namespace, Name: d.name}
	hc, err := reader.HostedCluster(cmd.Context(), key)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	pools, err := reader.NodePools(cmd.Context(), d.namespace, d.name)
	if err != nil {
		return err
	}
	goes := []string{fmt.Sprintf("HostedCluster %s, platform %s, version %s, with all data in its etcd",
		key, hc.Spec.Platform.Type, look.Or(look.CompletedVersion(hc)))}
	for i := range pools {
		goes = append(goes, fmt.Sprintf("NodePool %s with %s nodes: its machines are released, and their disks may be erased",
			pools[i].Name, look.Nodes(&pools[i])))
	}
	return confirm.Ask(cmd, confirm.Question{Name: d.name, What: "destroy HostedCluster " + key.String(), Goes: goes})
}

func (d *destroy) destroy(ctx context.Context, c client.Client, report *progress.Reporter) error {
	key := client.ObjectKey{Namespace: d.namespace, Name: d.name}
	hc := &hyperv1.HostedCluster{}
	err := c.Get(ctx, key, hc)
	switch {
	case apierrors.IsNotFound(err):
		report.Printf("HostedCluster %s is not there", key)
	case err != nil:
		return fmt.Errorf("read HostedCluster %s: %w", key, err)
	default:
		if err := d.deleteCluster(ctx, c, hc, report); err != nil {
			return err
		}
	}
	was := err == nil
	deleted, err := d.deleteLeftovers(ctx, c)
	if err != nil {
		return err
	}
	if !was {
		report.Printf("nothing to destroy, %d Secrets and ConfigMaps of an earlier %s deleted; are --name and --namespace right?", deleted, key)
		return nil
	}
	report.Printf("cluster %s destroyed, %d of its Secrets and ConfigMaps deleted", key, deleted)
	return nil
}

func (d *destroy) deleteCluster(ctx context.Context, c client.Client, hc *hyperv1.HostedCluster, report *progress.Reporter) error {
	key := client.ObjectKeyFromObject(hc)
	if hc.Spec.Platform.Type != d.platform {
		return exit.UsageError(fmt.Errorf("HostedCluster %s is of platform %s; use: destroy cluster %s --name %s",
			key, hc.Spec.Platform.Type, strings.ToLower(string(hc.Spec.Platform.Type)), hc.Name))
	}
	if d.infraID == "" {
		d.infraID = hc.Spec.InfraID
	}
	if d.cloudResources && hc.Annotations[hyperv1.CleanupCloudResourcesAnnotation] != "true" {
		before := hc.DeepCopy()
		metav1.SetMetaDataAnnotation(&hc.ObjectMeta, hyperv1.CleanupCloudResourcesAnnotation, "true")
		if err := c.Patch(ctx, hc, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("annotate HostedCluster %s: %w", key, err)
		}
	}
	if err := c.Delete(ctx, hc); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete HostedCluster %s: %w", key, err)
	}
	report.Printf("HostedCluster %s is being deleted", key)
	return report.Wait(ctx, "the deletion of HostedCluster "+key.String(), d.gracePeriod, time.Second, func(ctx context.Context) (progress.State, error) {
		return lookGone(ctx, c, key)
	})
}

func lookGone(ctx context.Context, c client.Client, key client.ObjectKey) (progress.State, error) {
	hc := &hyperv1.HostedCluster{}
	err := c.Get(ctx, key, hc)
	if apierrors.IsNotFound(err) {
		return progress.State{Done: true, Message: "HostedCluster " + key.String() + " is gone"}, nil
	}
	if err != nil {
		return progress.State{}, fmt.Errorf("read HostedCluster %s: %w", key, err)
	}
	message := fmt.Sprintf("waiting for finalizers %s", strings.Join(hc.Finalizers, ", "))
	for _, c := range hc.Status.Conditions {
		switch c.Type {
		case string(hyperv1.HostedClusterAvailable):
			// For a deleted cluster, the condition names what the deletion waits for. Before the operator has observed the
			// deletion, the condition is outdated.
			if c.Status == metav1.ConditionFalse && c.ObservedGeneration == hc.Generation {
				message += "; " + c.Message
			}
		case string(hyperv1.HostedClusterDestroyed), string(hyperv1.CloudResourcesDestroyed):
			message += fmt.Sprintf("; %s is %s (%s): %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	return progress.State{Message: message}, nil
}

// deleteLeftovers deletes the objects that the create command made beside the cluster. If the infrastructure ID is
// unknown, because an earlier destroy was interrupted, it selects them by name, and only those labeled as safe to
// delete.
func (d *destroy) deleteLeftovers(ctx context.Context, c client.Client) (int, error) {
	var secrets corev1.SecretList
	if err := c.List(ctx, &secrets, client.InNamespace(d.namespace), client.HasLabels{hyperv1.AutoCreatedForInfraLabel}); err != nil {
		return 0, fmt.Errorf("list the Secrets of namespace %s: %w", d.namespace, err)
	}
	var configMaps corev1.ConfigMapList
	if err := c.List(ctx, &configMaps, client.InNamespace(d.namespace), client.HasLabels{hyperv1.AutoCreatedForInfraLabel}); err != nil {
		return 0, fmt.Errorf("list the ConfigMaps of namespace %s: %w", d.namespace, err)
	}
	var leftovers []client.Object
	for i := range secrets.Items {
		leftovers = append(leftovers, &secrets.Items[i])
	}
	for i := range configMaps.Items {
		leftovers = append(leftovers, &configMaps.Items[i])
	}
	leftovers = slices.DeleteFunc(leftovers, func(obj client.Object) bool { return !d.belongs(obj) })
	for _, obj := range leftovers {
		if err := c.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("delete %T %s/%s: %w", obj, d.namespace, obj.GetName(), err)
		}
	}
	return len(leftovers), nil
}

func (d *destroy) belongs(obj client.Object) bool {
	infraID := obj.GetLabels()[hyperv1.AutoCreatedForInfraLabel]
	if d.infraID != "" {
		return infraID == d.infraID
	}
	suffixes := []string{pullSecretSuffix, sshKeySuffix, encryptionSuffix, trustBundleSuffix, "-" + strings.ToLower(string(d.platform)) + "-credentials"}
	return slices.ContainsFunc(suffixes, func(suffix string) bool { return obj.GetName() == d.name+suffix })
}
