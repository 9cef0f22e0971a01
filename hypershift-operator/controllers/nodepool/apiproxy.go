package nodepool

import (
	"context"
	"fmt"
)

// apiProxyConfig is the MachineConfig that gives nodes a local address of the API server.
func (r *Reconciler) apiProxyConfig(ctx context.Context, s *scope) (string, error) {
	return "", fmt.Errorf("not implemented")
}
