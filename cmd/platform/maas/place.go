// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
)

// Place implements nodepool.Placer. It returns the machine's name and state in MAAS, and the LXD host of a virtual
// machine.
func (*NodePool) Place(ctx context.Context, c client.Reader, machine *clusterv1.Machine) (string, error) {
	key := client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.InfrastructureRef.Name}
	if key.Name == "" {
		return "", nil
	}
	got := &infrav1.MaasMachine{}
	if err := c.Get(ctx, key, got); err != nil {
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return "", fmt.Errorf("read MaasMachine %s: %w", key, err)
	}
	var words []string
	if name := ptr.Deref(got.Status.Hostname, ""); name != "" {
		words = append(words, "is "+name)
	}
	if got.Status.LXDHost != "" {
		words = append(words, "on "+got.Status.LXDHost)
	}
	if state := ptr.Deref(got.Status.MachineState, ""); state != "" {
		words = append(words, "("+state+")")
	}
	return strings.Join(words, " "), nil
}
