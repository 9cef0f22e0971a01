// SPDX-License-Identifier: Apache-2.0

package journey

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
)

// auditLog is the audit log of service account requests, written by the management machine's API server.
const auditLog = "management/root/var/log/kubernetes/audit*.log"

// Asked holds the requests of a service account to the management cluster: the verbs of each "group/resource".
type Asked struct {
	Granted, Denied map[string][]string
}

// event holds the relevant fields of a line of the audit log.
type event struct {
	Verb string
	User struct {
		Username string
		Extra    map[string][]string
	}
	// ObjectRef is nil for requests without an object, such as discovery.
	ObjectRef             *struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus        struct{ Code int }
	RequestURI, UserAgent string
	Annotations           map[string]string
	// RequestReceivedTimestamp is when the API server received the request.
	RequestReceivedTimestamp time.Time
}

// Asked reads the audit log, starting at AuditFrom. account is namespace:name.
func (w *Walker) Asked(account string) (Asked, error) {
	asked := Asked{Granted: map[string][]string{}, Denied: map[string][]string{}}
	return asked, w.eachEvent(func(e event) {
		if e.User.Username == "system:serviceaccount:"+account && e.ObjectRef != nil &&
			!e.RequestReceivedTimestamp.Before(w.AuditFrom) {
			asked.add(e)
		}
	})
}

// eachEvent calls do for each event of the audit log, in any order.
func (w *Walker) eachEvent(do func(event)) error {
	files, err := filepath.Glob(w.Path(auditLog))
	if err != nil {
		return fmt.Errorf("looking for %s: %w", w.Path(auditLog), err)
	}
	if len(files) == 0 {
		return fmt.Errorf("there is no %s", w.Path(auditLog))
	}
	for _, file := range files {
		if err := eachLine(file, do); err != nil {
			return err
		}
	}
	return nil
}

func eachLine(file string, do func(event)) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		// The last line may be incomplete.
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			do(e)
		}
	}
	return lines.Err()
}

func (a Asked) add(e event) {
	into := a.Granted
	if e.Annotations["authorization.k8s.io/decision"] == "forbid" {
		into = a.Denied
	}
	key := e.ObjectRef.APIGroup + "/" + strings.TrimSuffix(e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")
	if !slices.Contains(into[key], e.Verb) {
		into[key] = append(into[key], e.Verb)
	}
}

// Unused lists "verb group/resource" of all granted permissions that no request used, sorted. An account that watches
// may also get and list: it lists first if the API server does not stream lists.
func (a Asked) Unused(rules []rbacv1.PolicyRule) []string {
	var unused []string
	for _, rule := range rules {
		key := rule.APIGroups[0] + "/" + rule.Resources[0]
		asked := a.Granted[key]
		if slices.Contains(asked, "watch") {
			asked = append(slices.Clone(asked), "get", "list")
		}
		for _, verb := range rule.Verbs {
			if !slices.Contains(asked, verb) {
				unused = append(unused, verb+" "+key)
			}
		}
	}
	slices.Sort(unused)
	return slices.Compact(unused)
}
