// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

// metrics waits until metrics-server has metrics of both nodes and of the workload's pods, through the aggregated API.
func (s *suite) metrics(t *testing.T) {
	for what, query := range map[string]struct {
		path string
		want int
	}{
		"nodes": {"nodes", 2}, "pods": {"namespaces/default/pods", 1},
	} {
		s.reach(t, "metrics of "+what, soon, func(ctx context.Context) (bool, string, error) {
			out, err := s.Read(ctx, s.Guest(s.cluster, "get", "--raw", "/apis/metrics.k8s.io/v1beta1/"+query.path)...)
			if err != nil {
				return false, strings.TrimSpace(out), err
			}
			var list struct {
				Items []json.RawMessage `json:"items"`
			}
			if err := json.Unmarshal([]byte(out), &list); err != nil {
				return false, out, nil //nolint:nilerr // An API that is not registered yet answers with text.
			}
			return len(list.Items) >= query.want, out, nil
		})
	}
}
