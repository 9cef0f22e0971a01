// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// handler answers admission requests for one kind. It never rejects an object: if it cannot set a default, the API
// server validates the unchanged object.
type handler struct {
	// cluster is uncached: a NodePool is often created right after its HostedCluster.
	cluster  client.Reader
	defaults defaults
}

// Handle implements admission.Handler.
//
// It works on JSON instead of Go types, which would add empty values that the user did not write.
func (h handler) Handle(ctx context.Context, req admission.Request) admission.Response {
	var obj map[string]any
	if err := json.Unmarshal(req.Object.Raw, &obj); err != nil {
		return unchanged(fmt.Errorf("decoding the object: %w", err))
	}
	notes, failure := h.defaults(ctx, h.cluster, req.Namespace, obj)
	defaulted, err := json.Marshal(obj)
	if err != nil {
		return unchanged(fmt.Errorf("encoding the object: %w", err))
	}
	if failure != nil {
		notes = append(notes, warning(failure))
	}
	return admission.PatchResponseFromRaw(req.Object.Raw, defaulted).WithWarnings(notes...)
}

func unchanged(err error) admission.Response {
	return admission.Allowed("").WithWarnings(warning(err))
}

func warning(err error) string {
	return fmt.Sprintf("defaults that depend on the cluster were not set: %v", err)
}
