// SPDX-License-Identifier: Apache-2.0

// Package uninstall holds the command that removes what install has written.
package uninstall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/confirm"
	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/progress"
	"github.com/openshift/hypershift/support/condition"
)

// uninstall holds the state of one `uninstall`.
type uninstall struct {
	connection kube.Connection
	namespace  string
	crds       bool
	dryRun     bool
	yes        bool

	client client.Client
}

// NewCommand returns the command `uninstall`.
func NewCommand() *cobra.Command {
	u := &uninstall{}
	cmd := &cobra.Command{
		Use: "uninstall", Short: "Remove the operator from the management cluster",
		Long: "Remove everything that install has written, and nothing else. The command refuses while hosted clusters " +
			"or NodePools exist: their machines would stay allocated. The CRDs stay unless you set --crds. A namespace " +
			"stays if it has objects of others.",
		Example: "  # Show what would be removed\n  hypershift uninstall --crds --dry-run\n" +
			"  # Remove everything, in a script\n  hypershift uninstall --crds --yes",
		Args: cobra.NoArgs,
		RunE: u.run,
	}
	flags := cmd.Flags()
	flags.StringVar(&u.namespace, "namespace", "hypershift", "namespace of the operator")
	flags.BoolVar(&u.crds, "crds", false, "also remove the CRDs that install has written; refused while they have "+
		"objects")
	flags.BoolVar(&u.dryRun, "dry-run", false, "print what would be removed, and change nothing")
	confirm.AddFlag(flags, &u.yes)
	u.connection.AddFlags(flags)
	return cmd
}

func (u *uninstall) run(cmd *cobra.Command, _ []string) error {
	if !u.dryRun && !u.yes && !confirm.Terminal(cmd) {
		return exit.UsageError(errors.New("uninstall asks on a terminal; in a script set --yes, or --dry-run to change " +
			"nothing"))
	}
	var err error
	if u.client, err = u.connection.Client(); err != nil {
		return err
	}
	if err := u.refuse(cmd.Context()); err != nil {
		return err
	}
	found, err := u.find(cmd.Context())
	if err != nil {
		return err
	}
	if len(found.remove) == 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "There is no installation in namespace %s.\n", u.namespace)
		return nil
	}
	if u.dryRun {
		return found.print(cmd.OutOrStdout())
	}
	if !u.yes {
		question := confirm.Question{Name: u.namespace, What: "remove HyperShift", Goes: found.names()}
		if err := confirm.Ask(cmd, question); err != nil {
			return err
		}
	}
	return u.remove(cmd.Context(), found, progress.New(cmd.ErrOrStderr(), clock.RealClock{}))
}

// refuse returns an error if the management cluster hosts clusters.
func (u *uninstall) refuse(ctx context.Context) error {
	var left []string
	for _, kind := range []string{"HostedCluster", "NodePool", "HostedControlPlane"} {
		names, err := u.list(ctx, hyperv1.GroupVersion.WithKind(kind), 0)
		if err != nil {
			return err
		}
		for _, name := range names {
			left = append(left, kind+" "+name)
		}
	}
	if len(left) == 0 {
		return nil
	}
	const most = 5
	text := strings.Join(left[:min(most, len(left))], ", ")
	if len(left) > most {
		text += fmt.Sprintf(" and %d more", len(left)-most)
	}
	return fmt.Errorf("HyperShift is in use: there are %s; destroy the clusters first with hypershift destroy "+
		"cluster, so that their machines are released", text)
}

// list returns the names of the objects of a kind, at most limit unless it is 0; none if the kind is not served.
func (u *uninstall) list(ctx context.Context, gvk schema.GroupVersionKind, limit int64) ([]string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := u.client.List(ctx, list, client.Limit(limit))
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for objects of kind %s: %w", gvk.Kind, err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, strings.TrimPrefix(client.ObjectKeyFromObject(&list.Items[i]).String(), "/"))
	}
	return names, nil
}

// installation is what the command removes.
type installation struct {
	// remove has the objects in the order in which they are removed.
	remove []client.Object
	// kept says which namespaces stay, and why.
	kept []string
}

func (i *installation) names() []string {
	var names []string
	for _, obj := range i.remove {
		names = append(names, describe(obj))
	}
	return append(names, i.kept...)
}

func (i *installation) print(out io.Writer) error {
	for _, obj := range i.remove {
		if _, err := fmt.Fprintf(out, "remove  %s\n", describe(obj)); err != nil {
			return err
		}
	}
	for _, text := range i.kept {
		if _, err := fmt.Fprintf(out, "keep    %s\n", text); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "\n%s to remove. Nothing was changed.\n", condition.Count(len(i.remove), "object"))
	return err
}

// remove deletes the objects. The command can be interrupted and repeated.
func (u *uninstall) remove(ctx context.Context, found *installation, report *progress.Reporter) error {
	removed := 0
	for _, obj := range found.remove {
		uid, version := obj.GetUID(), obj.GetResourceVersion()
		// An object that another client has replaced may belong to another product.
		preconditions := client.Preconditions{UID: &uid}
		if slices.Contains(guarded, obj.GetObjectKind().GroupVersionKind().Kind) {
			preconditions.ResourceVersion = &version
		}
		err := u.client.Delete(ctx, obj, preconditions, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("remove %s: %w; run the command again to continue", describe(obj), err)
		}
		removed++
		report.Printf("%s removed", describe(obj))
	}
	for _, text := range found.kept {
		report.Printf("%s", text)
	}
	report.Printf("HyperShift is removed: %s", condition.Count(removed, "object"))
	return nil
}

// describe returns Kind namespace/name.
func describe(obj client.Object) string {
	name := strings.TrimPrefix(client.ObjectKeyFromObject(obj).String(), "/")
	return obj.GetObjectKind().GroupVersionKind().Kind + " " + name
}
