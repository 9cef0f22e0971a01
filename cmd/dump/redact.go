// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// userinfo matches the user and the password of a URL, also in an escaped URL, as in the files of node configuration.
var userinfo = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`://[^\s/?#"<>\\]*@`), "://redacted@"},
	{regexp.MustCompile(`(?i)%3a%2f%2f(?:[^\s/?#"<>\\%]|%[013-9a-f][0-9a-f]|%2[0-9a-e])*%40`), "%3A%2F%2Fredacted%40"},
}

// redactURLs replaces user and password of all URLs in a text.
func redactURLs(text string) string {
	for _, u := range userinfo {
		text = u.pattern.ReplaceAllString(text, u.with)
	}
	return text
}

// redact keeps the keys of a Secret and the size of each value, and removes fields that repeat the values or have no
// use. It removes user and password from URLs: many objects contain the URL of a proxy.
func redact(obj *unstructured.Unstructured) {
	unstructured.RemoveNestedField(obj.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	if obj.GetKind() == "Secret" {
		redactSecret(obj)
	}
	for key, value := range obj.Object {
		obj.Object[key] = redactValue(value)
	}
}

func redactSecret(obj *unstructured.Unstructured) {
	for _, field := range []string{"data", "stringData"} {
		data, found, err := unstructured.NestedMap(obj.Object, field)
		if !found || err != nil {
			unstructured.RemoveNestedField(obj.Object, field)
			continue
		}
		sizes := map[string]any{}
		for key, value := range data {
			sizes[key] = fmt.Sprintf("redacted, %d characters", len(fmt.Sprint(value)))
		}
		obj.Object[field] = sizes
	}
}

// redactValue redacts the URLs in a value, recursively.
func redactValue(value any) any {
	switch value := value.(type) {
	case string:
		return redactURLs(value)
	case []any:
		for i := range value {
			value[i] = redactValue(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = redactValue(value[key])
		}
	}
	return value
}
