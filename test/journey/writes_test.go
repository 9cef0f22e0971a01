// SPDX-License-Identifier: Apache-2.0

package journey

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// auditLine returns a line of the audit log of a write to the Secret x/s; second is its time.
func auditLine(account, pod, verb string, second, code int, more string) string {
	return fmt.Sprintf(`{"verb":%q,"user":{"username":"system:serviceaccount:%s","extra":{%q:[%q]}},`+
		`"objectRef":{"resource":"secrets","namespace":"x","name":"s"},"responseStatus":{"code":%d},`+
		`"requestReceivedTimestamp":"2026-11-27T10:00:%02d.000000Z","userAgent":"hypershift-operator/v1"%s}`,
		verb, account, podName, pod, code, second, more)
}

func TestAuditWrites(t *testing.T) {
	g := NewWithT(t)
	w := &Walker{Dir: t.TempDir()}
	file := filepath.Join(w.Dir, "management/root/var/log/kubernetes/audit.log")
	g.Expect(os.MkdirAll(filepath.Dir(file), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(file, []byte(strings.Join([]string{
		auditLine("ns:a", "old", "update", 1, 200, ""),
		auditLine("ns:a", "new", "patch", 4, 200, `,"requestURI":"/api/v1/namespaces/x/secrets/s?fieldManager=applier&force=true"`),
		auditLine("ns:a", "old", "update", 3, 200, ""),
		auditLine("ns:a", "old", "get", 5, 200, ""),
		auditLine("ns:a", "old", "update", 6, 409, ""),
		auditLine("other:a", "old", "update", 7, 200, ""),
		auditLine("ns:a", "old", "update", 0, 200, ""),
	}, "\n")), 0o600)).To(Succeed())
	writes, err := w.Writes(time.Date(2026, 11, 27, 10, 0, 1, 0, time.UTC), "ns")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(writes).To(HaveLen(3), "successful writes of the namespace's accounts since the time")
	g.Expect(ByManager(writes)).To(Equal(map[string]int{"ns:a as hypershift-operator": 2, "ns:a as applier": 1}))
	g.Expect(writes[2].Pod).To(Equal("new"))
	g.Expect(writes[2].Object).To(Equal("secrets x/s"))
	g.Expect(Contested(writes)).To(BeEmpty())
	writes = append(writes, writes[0])
	g.Expect(Contested(writes)).To(Equal([]string{"secrets x/s: pod old of ns:a writes after pod new"}))
}
