// SPDX-License-Identifier: Apache-2.0

package v2

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func eachObject(list client.ObjectList, visit func(client.Object)) error {
	return meta.EachListItem(list, func(item runtime.Object) error {
		visit(item.(client.Object))
		return nil
	})
}
