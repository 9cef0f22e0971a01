// SPDX-License-Identifier: Apache-2.0

package undecodable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// collection is a list whose items are not decoded.
type collection struct {
	metav1.TypeMeta `json:",inline"`

	Metadata json.RawMessage   `json:"metadata"`
	Items    []json.RawMessage `json:"items"`
}

// list filters the response to a list of a namespace, or of all namespaces. complete reports whether the list contains
// all existing objects.
func (f *Filter) list(response *http.Response, namespace string, complete bool) (*http.Response, error) {
	raw, err := io.ReadAll(response.Body)
	if closeErr := response.Body.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, fmt.Errorf("reading a list: %w", err)
	}
	filtered := f.filterList(raw, namespace, complete)
	response.Body = io.NopCloser(bytes.NewReader(filtered))
	response.ContentLength = int64(len(filtered))
	if response.Header.Get("Content-Length") != "" {
		response.Header.Set("Content-Length", strconv.Itoa(len(filtered)))
	}
	return response, nil
}

func (f *Filter) filterList(raw []byte, namespace string, complete bool) []byte {
	var kind metav1.TypeMeta
	if err := json.Unmarshal(raw, &kind); err != nil {
		return raw
	}
	typed, err := f.scheme.New(kind.GroupVersionKind())
	if err != nil {
		return raw
	}
	failed := map[string]bool{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, typed); err != nil {
		raw = f.filterItems(raw, failed)
	}
	if complete {
		gvk := kind.GroupVersionKind()
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
		f.reports.keep(gvk.GroupKind(), namespace, failed)
	}
	return raw
}

// filterItems replaces the items that cannot be decoded with their last good state, or drops them. It adds their keys
// to failed.
func (f *Filter) filterItems(raw []byte, failed map[string]bool) []byte {
	var all collection
	if err := json.Unmarshal(raw, &all); err != nil {
		return raw
	}
	kept := make([]json.RawMessage, 0, len(all.Items))
	for _, item := range all.Items {
		found, err := f.decode(item)
		if err == nil {
			kept = append(kept, item)
			continue
		}
		f.reports.add(found, err)
		failed[found.key().String()] = true
		if last := f.lastGood(found); last != nil {
			kept = append(kept, last)
		}
	}
	if len(failed) == 0 {
		return raw
	}
	all.Items = kept
	filtered, err := json.Marshal(all)
	if err != nil {
		return raw
	}
	return filtered
}
