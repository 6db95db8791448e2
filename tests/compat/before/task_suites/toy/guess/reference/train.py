import csv

with open("train.csv", newline="") as file:
    limit = min(int(row["x"]) for row in csv.DictReader(file) if row["label"] == "yes")
with open("test.csv", newline="") as file:
    rows = list(csv.DictReader(file))
with open("submission.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["id", "label"])
    writer.writerows([row["id"], "yes" if int(row["x"]) >= limit else "no"] for row in rows)
print(f"yes from {limit} on")
