import csv


def write(path, columns, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)


def prepare(raw, public, answers, variant):
    train = [(f"a{i}", 37 * i % 100) for i in range(100)]
    test = [(f"b{i}", 7 * i % 100) for i in range(100)]
    label = lambda x: "yes" if x >= 40 else "no"
    write(public / "train.csv", ["id", "x", "label"], [(key, x, label(x)) for key, x in train])
    write(public / "test.csv", ["id", "x"], test)
    write(answers / "answers.csv", ["id", "label"], [(key, label(x)) for key, x in test])
