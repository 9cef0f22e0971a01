// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
)

// relaxed are the kinds that third-party providers write. Versions of the contract v1beta1 write conditions without a
// reason or a message.
var relaxed = []string{"maasclusters.infrastructure.cluster.x-k8s.io", "maasmachines.infrastructure.cluster.x-k8s.io"}

// relaxConditions accepts conditions without a reason or a message, and reasons in any form.
func relaxConditions(crds map[string]object) error {
	for _, kind := range relaxed {
		conditions, err := property(crds[kind], "status.conditions")
		if err != nil {
			return fmt.Errorf("relaxing the conditions of %s: %w", kind, err)
		}
		items, err := at(conditions, "items")
		if err != nil {
			return fmt.Errorf("relaxing the conditions of %s: %w", kind, err)
		}
		required, _ := items["required"].([]any)
		items["required"] = slices.DeleteFunc(required, func(field any) bool {
			return field == "reason" || field == "message"
		})
		reason, err := at(items, "properties", "reason")
		if err != nil {
			return fmt.Errorf("relaxing the conditions of %s: %w", kind, err)
		}
		delete(reason, "minLength")
		delete(reason, "pattern")
	}
	return nil
}
