// SPDX-License-Identifier: Apache-2.0

// Package protected defines which users may set and remove the annotations, labels and finalizers of HyperShift. The
// API server enforces it.
//
// Tenants write HostedClusters, NodePools, Secrets and ConfigMaps, and with them all metadata of these objects. Only
// the operator and administrators change metadata that decides ownership or isolation. Table lists every key; Objects
// returns the policies.
package protected

import (
	"cmp"
	"slices"
	"strings"
)

// Right is the verb on hostedclusters.hypershift.openshift.io, in all namespaces, that lets a user change protected
// metadata. The operator has it, and so has every user with the verb "*", such as cluster-admin.
const Right = "administer"

// Writer is the group of users or programs that sets a key.
type Writer string

// The writers.
const (
	// Tenant keys change the tenant's own cluster only.
	Tenant Writer = "tenants"
	// Administrator keys are set by users with Right.
	Administrator Writer = "administrators"
	// Operator keys are written by the operator. Users with Right may change them.
	Operator Writer = "the operator"
	// Programs keys are written by programs of HyperShift, on objects that tenants cannot write. No policy is needed.
	Programs Writer = "programs"
)

// Form is the type of metadata: annotation, label or finalizer.
type Form string

// The forms.
const (
	Annotation Form = "annotation"
	Label      Form = "label"
	Finalizer  Form = "finalizer"
)

// Kind is a kind of object that carries a key.
type Kind string

// The kinds that the policies cover. Elsewhere stands for objects that tenants cannot write: objects in hosted
// namespaces, in guests and on management nodes.
const (
	HostedCluster Kind = "HostedCluster"
	NodePool      Kind = "NodePool"
	Secret        Kind = "Secret"
	ConfigMap     Kind = "ConfigMap"
	Namespace     Kind = "Namespace"
	Elsewhere     Kind = "hosted"
)

// Row states which Writer may set one key on some kinds of objects.
type Row struct {
	// Key is the complete name. A trailing "*" matches all names with that prefix.
	Key    string
	Form   Form
	On     []Kind
	Writer Writer
	// Why explains what the key decides, or what limits it.
	Why string
}

// protects reports whether the policies keep tenants from changing the key.
func (r Row) protects() bool { return r.Writer == Administrator || r.Writer == Operator }

// keys returns the protected keys of a form on a kind, sorted.
func keys(kind Kind, form Form) []string {
	var found []string
	for _, row := range Table() {
		if row.protects() && row.Form == form && slices.Contains(row.On, kind) {
			found = append(found, row.Key)
		}
	}
	slices.Sort(found)
	return found
}

// Find returns the rows of a key.
func Find(key string) []Row {
	var found []Row
	for _, row := range Table() {
		prefix, wild := strings.CutSuffix(row.Key, "*")
		if row.Key == key || wild && strings.HasPrefix(key, prefix) {
			found = append(found, row)
		}
	}
	return found
}

// Markdown returns the table in the format of the documentation.
func Markdown() string {
	rows := Table()
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(order(a.Writer), order(b.Writer)), strings.Compare(string(a.Form), string(b.Form)),
			strings.Compare(a.Key, b.Key))
	})
	text := &strings.Builder{}
	text.WriteString("| key | form | on | set by | what it decides |\n|---|---|---|---|---|\n")
	for _, row := range rows {
		kinds := make([]string, 0, len(row.On))
		for _, kind := range row.On {
			kinds = append(kinds, string(kind))
		}
		cells := []string{"`" + row.Key + "`", string(row.Form), strings.Join(kinds, ", "), string(row.Writer), row.Why}
		text.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	return text.String()
}

func order(w Writer) int { return slices.Index([]Writer{Administrator, Operator, Tenant, Programs}, w) }
