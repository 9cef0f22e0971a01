// SPDX-License-Identifier: Apache-2.0

package install

import (
	schedulingv1 "k8s.io/api/scheduling/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Owns reports whether an installation has applied an object.
func Owns(obj client.Object) bool {
	for _, entry := range obj.GetManagedFields() {
		if entry.Manager == FieldOwner && entry.Subresource == "" {
			return true
		}
	}
	return false
}

// OwnsPriorityClass reports whether an installation has created a PriorityClass. An administrator may have created one
// of the same name, with another value.
func OwnsPriorityClass(class *schedulingv1.PriorityClass) bool {
	for _, obj := range priorityClasses() {
		own, ok := obj.(*schedulingv1.PriorityClass)
		if ok && own.Name == class.Name && own.Value == class.Value && own.Description == class.Description {
			return true
		}
	}
	return false
}

// VirtualIPNamespace returns the namespace of the pods that hold virtual IPs, for an operator in a namespace.
func VirtualIPNamespace(operator string) string {
	return (&Options{namespace: operator}).virtualIPNamespace()
}
