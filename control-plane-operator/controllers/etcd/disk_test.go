// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// page returns the metrics of a member whose process started at that time, in seconds. The other arguments are the
// numbers of fsyncs in each bucket of the histogram.
func page(start int, upTo8, upTo16, upTo64, upTo128, more int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "# TYPE %s gauge\n%s %d\n# TYPE %s histogram\n", startFamily, startFamily, start, fsyncFamily)
	total := 0
	for _, bucket := range []struct {
		bound string
		count int
	}{{"0.008", upTo8}, {"0.016", upTo16}, {"0.064", upTo64}, {"0.128", upTo128}, {"+Inf", more}} {
		total += bucket.count
		fmt.Fprintf(&text, "%s_bucket{le=%q} %d\n", fsyncFamily, bucket.bound, total)
	}
	fmt.Fprintf(&text, "%s_sum 1\n%s_count %d\n", fsyncFamily, fsyncFamily, total)
	return text.String()
}

// TestDisk measures a disk every five minutes and checks the reported condition.
func TestDisk(t *testing.T) {
	const fast, unknown = "True", ""
	quick, slow := page(1, 1000, 0, 0, 0, 0), page(1, 900, 0, 200, 0, 0)
	for name, tc := range map[string]struct {
		pages, want []string
	}{
		"When there is only one sample, the state should be unknown": {[]string{quick}, []string{unknown}},
		"When fsyncs are fast, the disk should be fast":              {[]string{page(1, 0, 0, 0, 0, 0), quick}, []string{unknown, fast}},
		"When there are too few fsyncs, it should wait for more": {
			[]string{page(1, 0, 0, 0, 0, 0), page(1, 99, 0, 0, 0, 0), page(1, 100, 0, 0, 0, 0)}, []string{unknown, unknown, fast}},
		"When 2% of the fsyncs are slow, it should report an interpolated latency": {
			[]string{page(1, 0, 0, 0, 0, 0), page(1, 980, 0, 20, 0, 0)}, []string{unknown, "40 ms"}},
		"When fsyncs were slow before the window, they should not count": {
			[]string{page(1, 0, 0, 500, 0, 0), page(1, 1000, 0, 500, 0, 0)}, []string{unknown, fast}},
		"When all fsyncs exceed the last bucket, it should report the bound of that bucket": {
			[]string{page(1, 0, 0, 0, 0, 0), page(1, 0, 0, 0, 0, 500)}, []string{unknown, "128 ms"}},
		"When the member restarted, it should start to count again": {
			[]string{page(1, 0, 0, 0, 0, 0), page(2, 900, 0, 200, 0, 0), page(2, 1900, 0, 200, 0, 0)}, []string{unknown, unknown, fast}},
		"When a slow disk is fast once, it should still report the disk as slow": {
			[]string{page(1, 0, 0, 0, 0, 0), slow, page(1, 2000, 0, 200, 0, 0), page(1, 3000, 0, 200, 0, 0), page(1, 4000, 0, 200, 0, 0)},
			[]string{unknown, "61 ms", "61 ms", "61 ms", fast}},
		"When the latency of a slow disk varies around the limit, it should still report the disk as slow": {
			[]string{page(1, 0, 0, 0, 0, 0), slow, page(1, 2000, 0, 200, 0, 0), page(1, 2900, 100, 200, 0, 0), page(1, 3900, 100, 200, 0, 0), page(1, 4900, 100, 200, 0, 0)},
			[]string{unknown, "61 ms", "61 ms", "15 ms", "15 ms", "15 ms"}},
		"When the latency rises a lot, it should report the new value, and otherwise not": {
			[]string{page(1, 0, 0, 0, 0, 0), page(1, 980, 0, 20, 0, 0), page(1, 1950, 0, 50, 0, 0), page(1, 1950, 0, 50, 200, 0)},
			[]string{unknown, "40 ms", "40 ms", "127 ms"}},
	} {
		t.Run(name, func(t *testing.T) {
			now, d := time.Unix(0, 0), &disk{}
			var got []string
			for _, text := range tc.pages {
				d.take(now, told(t, text))
				now = now.Add(diskWindow)
				got = append(got, said(d))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("When the window is not over, the disk should not be due for a check", func(t *testing.T) {
		d := &disk{}
		d.take(time.Unix(0, 0), told(t, quick))
		if d.due(time.Unix(299, 0)) || !d.due(time.Unix(300, 0)) {
			t.Error("a window is not five minutes long")
		}
	})
	t.Run("When a disk is unknown, it should report a condition only if another disk is slow", func(t *testing.T) {
		pods := []string{"etcd-0", "etcd-1"}
		disks := map[string]*disk{"etcd-0": {p99: time.Millisecond}}
		if _, known := diskFast(pods, disks); known {
			t.Error("something is said of a disk that nobody knows")
		}
		disks["etcd-0"].said = 45 * time.Millisecond
		c, known := diskFast(pods, disks)
		if want := "The disk is too slow for etcd: p99 of fsync is 45 ms on etcd-0, must be < 10 ms"; !known || c.Message != want || c.Reason != "DiskTooSlow" {
			t.Errorf("it says %s: %s", c.Reason, c.Message)
		}
	})
}

func told(t *testing.T, text string) *fsyncs {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }))
	defer server.Close()
	families, err := scrape(t.Context(), nil, server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return readFsyncs(families)
}

func said(d *disk) string {
	c, known := diskFast([]string{"etcd-0"}, map[string]*disk{"etcd-0": d})
	switch {
	case !known:
		return ""
	case c.Status == metav1.ConditionTrue:
		return "True"
	}
	_, latency, _ := strings.Cut(c.Message, "fsync is ")
	latency, _, _ = strings.Cut(latency, " on")
	return latency
}

func TestScrape(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		text   string
		want   string
	}{
		"When the server returns an error, it should report the status": {http.StatusForbidden, "", "it answers 403 Forbidden"},
		"When the response has no metrics, it should return an error":   {http.StatusOK, "<html>", "reading the metrics of"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.text))
			}))
			defer server.Close()
			if _, err := scrape(t.Context(), nil, server.URL); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
