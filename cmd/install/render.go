// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/objects"
)

// render holds the state of one `install render`.
type render struct {
	Options
	format     string
	outputs    string
	outputFile string
	sensitive  bool
}

func newRenderCommand(parts []Part) *cobra.Command {
	r := &render{Options: Options{parts: parts}}
	cmd := &cobra.Command{
		Use:     "render",
		Short:   "Print what install would apply, without asking a cluster",
		Example: "  hypershift install render --hypershift-image registry.example.com/hypershift:0.2.0 > install.yaml",
		Args:    cobra.NoArgs,
		RunE:    r.run,
	}
	r.Options.addFlags(cmd.Flags())
	cmd.Flags().StringVar(&r.format, "format", "yaml", "yaml or json")
	cmd.Flags().StringVar(&r.outputs, "outputs", "all", "all, crds or resources")
	cmd.Flags().StringVar(&r.outputFile, "output-file", "", "file to write to (default: standard output)")
	cmd.Flags().BoolVar(&r.sensitive, "render-sensitive", false, "print Secrets too")
	return cmd
}

func (r *render) run(cmd *cobra.Command, _ []string) error {
	if cmd.Flags().Changed("outputs") {
		if err := oneOf("outputs", r.outputs, scopeAll, scopeCRDs, scopeResources); err != nil {
			return exit.UsageError(err)
		}
		r.scope = r.outputs
	}
	if r.format != "yaml" && r.format != "json" {
		return exit.UsageError(fmt.Errorf("--format %q: use yaml or json", r.format))
	}
	if err := r.complete(cmd.Flags()); err != nil {
		return exit.UsageError(err)
	}
	warn(cmd.ErrOrStderr(), cmd.Flags())
	objs, err := r.objects()
	if err != nil {
		return err
	}
	if r.outputFile == "" {
		return r.write(cmd.OutOrStdout(), objs)
	}
	if err := objects.WriteFile(r.outputFile, func(w io.Writer) error { return r.write(w, objs) }); err != nil {
		return fmt.Errorf("--output-file: %w", err)
	}
	return nil
}

func (o *Options) objects() ([]client.Object, error) {
	var objs []client.Object
	if o.scope != scopeResources {
		definitions, err := o.definitions()
		if err != nil {
			return nil, err
		}
		for _, crd := range definitions {
			objs = append(objs, crd)
		}
	}
	if o.scope != scopeCRDs {
		objs = append(objs, o.resources()...)
	}
	return objs, nil
}

func (r *render) write(w io.Writer, objs []client.Object) error {
	if r.format == "yaml" {
		return objects.Write(w, objs, r.sensitive)
	}
	if !r.sensitive {
		objs = slices.DeleteFunc(objs, func(obj client.Object) bool { _, secret := obj.(*corev1.Secret); return secret })
	}
	items := []any{}
	for _, obj := range objs {
		u, err := objects.ToUnstructured(obj)
		if err != nil {
			return err
		}
		items = append(items, u.Object)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
}
